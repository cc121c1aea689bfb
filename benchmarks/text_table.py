"""A table of sentences in a page: columns of fixed shares of the width, whatever their words begin with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from streamjoin.reporting.page import Html


def text_table(columns: Sequence[tuple[str, int]], rows: Iterable[Sequence[str]]) -> Html:
    """Headings with their shares of the width in percent, and the rows.

    >>> "<td>a &lt; b</td>" in text_table([("what", 100)], [["a < b"]]).text
    True
    """
    shares = "".join(f'<col style="width:{share}%">' for _, share in columns)
    head = "".join(f"<th>{escape(heading)}</th>" for heading, _ in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return Html(
        f'<div class="table"><table style="width:100%;min-width:42rem;table-layout:fixed"><colgroup>{shares}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
