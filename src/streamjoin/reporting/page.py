"""A page: one HTML file with all that it needs, and nothing that asks the network. For phones, printers and the dark.

    page("What was found", [Section("Speed", ["In words.", Plot(...), Table(("rows", "seconds"), [("10", "1")])])])

Text is escaped, whatever it comes from; only `Html` is taken as it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

from streamjoin.reporting.charts import Plot, vega_lite


@dataclass(frozen=True)
class Html:
    """Markup that is taken as it is: whoever makes it escapes what it holds."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table of texts, of which the first names its row; columns of numbers are set to the right. Too wide ones are
    scrolled by themselves.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


Part = str | Plot | Table | Html


@dataclass(frozen=True)
class Section:
    """A heading, and what is below it: paragraphs, plots, tables."""

    title: str
    parts: Sequence[Part]


def page(title: str, sections: Sequence[Section], lead: Sequence[Part] = (), refresh: float | None = None) -> str:
    """The page as text; `lead` comes before the first section. With `refresh` a page that somebody serves loads itself
    anew every so many seconds, without losing its place.

    >>> text = page("Found", [Section("Less < more", ["a & b"])])
    >>> "<h2>Less &lt; more</h2>" in text, "<p>a &amp; b</p>" in text, "<script" in text
    (True, True, False)
    """
    parts = [*lead, *(part for section in sections for part in section.parts)]
    drawn = any(isinstance(part, Plot) for part in parts)
    body = main(title, sections, lead)
    refreshing = "" if refresh is None else f'<meta name="refresh-seconds" content="{refresh:g}">'
    scripts = f"<script>{_vega()}</script><script>{_asset('page.js')}</script>" if drawn or refreshing else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Whatever a page holds, the browser will not fetch anything for it. Vega compiles its expressions.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; connect-src 'self'\">"
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"{refreshing}<title>{escape(title)}</title><style>{_asset('page.css')}</style></head>\n"
        f"<body>{body}{scripts}</body></html>\n"
    )


def main(title: str, sections: Sequence[Section], lead: Sequence[Part] = ()) -> str:
    """What a reader sees of a page, without what makes it work."""
    found = "".join(
        f"<section><h2>{escape(section.title)}</h2>{''.join(map(_html, section.parts))}</section>\n"
        for section in sections
    )
    return f"<main>\n<h1>{escape(title)}</h1>\n{''.join(map(_html, lead))}{found}</main>"


def _html(part: Part) -> str:
    if isinstance(part, Html):
        return part.text
    if isinstance(part, Plot):
        return _figure(part)
    if isinstance(part, Table):
        return _table(part)
    return f"<p>{escape(part)}</p>"


def _figure(plot: Plot) -> str:
    words = "".join(f"<p>{escape(each)}</p>" for each in plot.words)
    shows = escape(f"{plot.title}: {plot.y} over {plot.x}")
    spec = json.dumps(plot.spec, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="plot"><figcaption><h3>{escape(plot.title)}</h3></figcaption>'
        f'<div class="drawn" role="img" aria-label="{shows}"></div>'
        f'<script type="application/json">{spec}</script>{words}</figure>'
    )


def _table(table: Table) -> str:
    rows = [[str(cell) for cell in row] for row in table.rows]
    right = [
        bool(rows) and all(_is_number(row[column]) for row in rows if column < len(row))
        for column in range(len(table.headings))
    ]

    def cells(tag: str, values: Sequence[str]) -> str:
        kinds = (' class="number"' if number else "" for number in right)
        told = (f"<{tag}{kind}>{escape(value)}</{tag}>" for value, kind in zip(values, kinds, strict=False))
        return f"<tr>{''.join(told)}</tr>"

    body = "".join(cells("td", row) for row in rows)
    head = cells("th", table.headings)
    return f'<div class="table"><table class="named"><thead>{head}</thead><tbody>{body}</tbody></table></div>'


def _is_number(text: str) -> bool:
    """Whether a text begins like a number, or says that there is none.

    >>> [_is_number(each) for each in ("1,234", "-0.5 s", "-", "R", "")]
    [True, True, True, False, True]
    """
    return text in ("", "-") or text.lstrip("-+~")[:1].isdigit()


@cache
def _asset(name: str) -> str:
    return resources.files("streamjoin.reporting").joinpath(name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and what puts their plots into a page: a library's own JavaScript, without its addresses."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed", vl_version=vega_lite())).replace(
        "</script", "<\\/script"
    )
