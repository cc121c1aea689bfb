"""Plots: lines over linear or logarithmic axes, drawn by Vega-Lite; in a page as wide as the screen, alone as SVG.

    Plot("kept", "seconds", "rows", [Line("left", [(0, 10), (1, 12)]), Line("claimed", [(0, 9)], dashed=True)])

Altair writes the specification and checks it. It is imported when something is drawn: whoever only joins does not wait
for it. Text and axes have the colour of what is around them, so a page in the dark needs no other plot.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from textwrap import wrap
from typing import Any, Final

# They differ in brightness too, and are seen on white and on black.
COLOURS: Final = ("#2f86d6", "#e07b1a", "#1f9d74", "#b65fc9", "#8a8f98", "#d94f5c", "#8a7a2f", "#5a6fd8")
WIDTH, HEIGHT = 560, 240
SELDOM: Final = 60  # points of a line that are drawn; more would hide it
LETTERS: Final = 84  # of a line of words above a plot of this width


@dataclass(frozen=True)
class Line:
    """Points `(x, y)`, positive if axes are logarithmic, in one colour; dashed for what is claimed, not measured."""

    label: str  # empty for the only line of a plot whose title says it
    points: Sequence[tuple[float, float]]
    colour: str | None = None  # by default one that no other line has
    dashed: bool = False


@dataclass(frozen=True)
class Plot:
    """A plot: what the axes show, with their units; the lines, and words about them.

    Axes are logarithmic unless it is `linear`; linear ones begin at zero, the y axis unless not `from_zero`. With
    `linear_x` the x axis is, whatever the other one is: time goes by evenly. `numbers` says how those of the y axis are
    written, as d3 does: `","` for 1,000,000 and `"~s"` for 1M. `stepped` lines hold a value until the next one.
    """

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    words: Sequence[str] = ()
    linear: bool = False
    numbers: str = ","
    from_zero: bool = True
    stepped: bool = False
    linear_x: bool = False

    def svg(self) -> str:
        """The plot as an SVG document.

        >>> Plot("t", "x", "y", [Line("a", [(1, 1), (10, 2)])]).svg()[:4]
        '<svg'
        """
        import vl_convert

        words = [part for each in self.words for part in wrap(each, LETTERS)]
        drawn = self._chart(WIDTH).properties(title=_title(self.title, words), background="white").to_dict()
        return str(vl_convert.vegalite_to_svg(json.dumps(drawn), vl_version=vega_lite())).rstrip() + "\n"

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The plot for a page, as wide as there is room; its title and words are the page's."""
        bare = tuple(replace(line, points=()) for line in self.lines)
        drawn, values = _for_a_page(replace(self, title="", words=(), lines=bare)), list(self._values())
        if "layer" in drawn and not any(value["point"] for value in values):
            drawn = drawn | {"layer": drawn["layer"][:1]}  # of points without any a browser's console complains
        return drawn | {"data": {"values": values}}

    def _chart(self, width: Any) -> Any:
        import altair as alt

        linear, logarithmic = alt.Scale(zero=True, nice=True), alt.Scale(type="log", nice=True)
        scale, even = linear if self.linear else logarithmic, self.linear or self.linear_x
        labels = [line.label for line in self.lines]
        colours = [line.colour or COLOURS[number % len(COLOURS)] for number, line in enumerate(self.lines)]
        columns = alt.ExprRef("width < 420 ? 1 : 2")
        named = alt.Legend(orient="bottom", title=None, labelLimit=280, columns=columns) if any(labels) else None
        across = alt.Axis(labelFlush=True, tickCount=alt.ExprRef("width / 80"), **_written(",", even))
        above: dict[str, Any] = {
            "titleAngle": 0,
            "titleAlign": "left",
            "titleAnchor": "end",
            "titleX": 0,
            "titleY": -10,
        }
        up = alt.Axis(tickCount=5, **above, **_written(self.numbers, self.linear))
        base = alt.Chart(alt.InlineData(values=list(self._values()))).encode(
            x=alt.X("x:Q", title=self.x, scale=linear if even else logarithmic, axis=across),
            y=alt.Y("y:Q", title=self.y, scale=scale if self.from_zero else alt.Scale(zero=False, nice=True), axis=up),
            color=alt.Color("line:N", scale=alt.Scale(domain=labels, range=colours), legend=named, sort=None),
            strokeDash=alt.StrokeDash(
                "line:N",
                scale=alt.Scale(domain=labels, range=[[6, 4] if line.dashed else [1, 0] for line in self.lines]),
                legend=named,
            ),
            order="at:Q",
            tooltip=[
                alt.Tooltip("line:N", title="line"),
                alt.Tooltip("x:Q", title=self.x, format=",.6~g"),
                alt.Tooltip("y:Q", title=self.y, format=",.6~g"),
            ],
        )
        drawn = base.mark_line(strokeWidth=2, interpolate="step-after" if self.stepped else "linear")
        points = base.mark_point(filled=True, size=32, opacity=1).transform_filter("datum.point")
        return alt.layer(drawn, points).properties(width=width, height=HEIGHT).configure(**_style())

    def _values(self) -> Iterator[dict[str, Any]]:
        seldom = max((len(line.points) for line in self.lines), default=0) <= SELDOM
        for line in self.lines:
            for at, (x, y) in enumerate(line.points):
                yield {"line": line.label, "x": float(x), "y": float(y), "at": at, "point": seldom and not line.dashed}


def _written(numbers: str, linear: bool) -> dict[str, Any]:
    """How numbers are written. By itself d3 writes 1e+2 where steps are round; and leaves ticks of a logarithmic axis
    without a number where they are close.
    """
    if not linear:
        return {"format": numbers}
    # Letters for sizes have one for thousandths too: 500m rows is half a row.
    small = "abs(datum.value) < 1 ? format(datum.value, ',') : " if numbers.endswith("s") else ""
    return {"labelExpr": f"{small}format(datum.value, '{numbers}')"}


@lru_cache(maxsize=256)
def _for_a_page(plot: Plot) -> dict[str, Any]:
    """The specification of a plot without its points. Altair checks it, which takes longer than all the rest, and a
    page that shows itself anew has the same plots every time.
    """
    drawn: dict[str, Any] = plot._chart("container").properties(background="transparent").to_dict()
    return drawn


def vega_lite() -> str:
    """The version of Vega-Lite that Altair writes for, as vl-convert names it: `"6.4"`."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])


def _title(title: str, words: Sequence[str]) -> Any:
    import altair as alt

    return alt.TitleParams(
        title, subtitle=list(words), anchor="start", fontSize=15, offset=22, subtitleFontSize=11, subtitleColor="#555"
    )


def _style() -> dict[str, Any]:
    ink = "currentColor"
    axis = {"labelColor": ink, "titleColor": ink, "domainColor": ink, "tickColor": ink, "gridColor": ink}
    quiet = {"gridOpacity": 0.15, "domainOpacity": 0.5, "tickOpacity": 0.5, "titleFontWeight": "normal"}
    return {
        "font": "system-ui, sans-serif",
        "axis": {**axis, **quiet, "labelFontSize": 11, "titleFontSize": 12, "labelOverlap": True},
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "symbolType": "stroke",
            "symbolSize": 350,
        },
        "view": {"stroke": None},
    }
