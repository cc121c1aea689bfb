"""The physical plan as a picture: boxes for sources, stages and the result, arrows between them with what flows there.

Rows flow downwards. A channel has one reader, so a plan is a tree: side by side where there is room, and for a phone
one below the other, with lines at the left where the reader is not the next box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Final

from streamjoin.plan.explaining import Arrow, Box

WIDE, NARROW = 250, 268  # the width of a box
LETTER, LINE = 6.3, 16.0  # as wide and as high as text is at most, in pixels
BETWEEN, BELOW = 28, 44  # boxes
RAIL: Final = 8  # from one line at the left to the next
MOST_BESIDE: Final = 4  # more do not fit beside each other


@dataclass(frozen=True)
class Placed:
    """A box in its place."""

    box: Box
    lines: tuple[str, ...]
    left: float
    top: float
    width: float

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + 12

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + self.height


def picture(boxes: Sequence[Box], arrows: Sequence[Arrow], rates: Mapping[int, str], title: str = "the plan") -> str:
    """The plan as markup: an SVG for wide screens and one for phones. `rates` says what flows by which channel."""
    levels = _levels(boxes, arrows)
    beside = max(sum(1 for each in levels.values() if each == level) for level in set(levels.values()))
    narrow = _below(boxes, arrows, rates, title)
    if beside > MOST_BESIDE:
        return f'<figure class="plan wide">{narrow}</figure>'
    wide = _beside(boxes, arrows, rates, levels, title)
    return f'<figure class="plan wide"><div class="wide-plan">{wide}</div><div class="narrow">{narrow}</div></figure>'


def _levels(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[str, int]:
    """How many arrows each box is above the result; level 0 is at the bottom."""
    reader = {arrow.start: arrow.end for arrow in arrows}
    levels = {}
    for box in boxes:
        name, steps = box.name, 0
        while name in reader:
            name, steps = reader[name], steps + 1
        levels[box.name] = steps
    return levels


def _wrapped(box: Box, told: str, width: float) -> tuple[str, ...]:
    lines = [*box.lines, *([f"Spark computes {told}"] if told else [])]
    return tuple(part for line in lines for part in wrap(line, int((width - 20) / LETTER)) or [""])


def _told(arrows: Sequence[Arrow]) -> dict[str, str]:
    return {arrow.start: "; ".join(arrow.told) for arrow in arrows}


def _beside(
    boxes: Sequence[Box], arrows: Sequence[Arrow], rates: Mapping[int, str], levels: Mapping[str, int], title: str
) -> str:
    told, rows = _told(arrows), [[box for box in boxes if levels[box.name] == level] for level in set(levels.values())]
    rows = sorted(rows, key=lambda row: -levels[row[0].name])
    width: float = max(len(row) for row in rows) * (WIDE + BETWEEN) + 20
    placed: dict[str, Placed] = {}
    top = 4.0
    for row in rows:
        left = (width - len(row) * (WIDE + BETWEEN) + BETWEEN) / 2
        for number, box in enumerate(row):
            lines = _wrapped(box, told.get(box.name, ""), WIDE)
            placed[box.name] = Placed(box, lines, left + number * (WIDE + BETWEEN), top, WIDE)
        top = max(placed[box.name].bottom for box in row) + BELOW
    drawn = []
    for arrow in arrows:
        start, end = placed[arrow.start], placed[arrow.end]
        feeders = [each.start for each in arrows if each.end == arrow.end]
        enters = end.left + end.width * (feeders.index(arrow.start) + 1) / (len(feeders) + 1)
        bend = end.top - 18
        drawn.append(
            f'<path d="M{start.middle:.1f} {start.bottom:.1f} V{bend:.1f} H{enters:.1f} V{end.top - 5:.1f}" '
            f'marker-end="url(#arrow-wide)"/>'
        )
        drawn.append(_rate(start.middle + 7, start.bottom + 15, rates.get(arrow.channel)))
        width = max(width, _right_of(start.middle + 7, rates.get(arrow.channel)))
    return _svg(placed, drawn, width, top - BELOW + 4, "arrow-wide", title)


def _below(boxes: Sequence[Box], arrows: Sequence[Arrow], rates: Mapping[int, str], title: str) -> str:
    told, order = _told(arrows), _feeders_first(boxes, arrows)
    placed: dict[str, Placed] = {}
    far = [each for each in arrows if order.index(each.end) != order.index(each.start) + 1]
    left, top = 10.0 + RAIL * len(far), 4.0
    by_name = {box.name: box for box in boxes}
    for name in order:
        lines = _wrapped(by_name[name], told.get(name, ""), NARROW)
        placed[name] = Placed(by_name[name], lines, left, top, NARROW)
        top = placed[name].bottom + BELOW
    drawn, width = [], left + NARROW + 4
    for arrow in arrows:
        start, end = placed[arrow.start], placed[arrow.end]
        if arrow in far:
            rail = 4.0 + RAIL * far.index(arrow)
            below, into = start.bottom + 8, end.top + 12 + RAIL * far.index(arrow)
            path = f"M{start.left + 14:.1f} {start.bottom:.1f} V{below:.1f} H{rail:.1f} V{into:.1f} H{end.left - 5:.1f}"
        else:
            path = f"M{start.left + 14:.1f} {start.bottom:.1f} V{end.top - 5:.1f}"
        drawn.append(f'<path d="{path}" marker-end="url(#arrow-narrow)"/>')
        drawn.append(_rate(start.left + 24, start.bottom + 22, rates.get(arrow.channel)))
        width = max(width, _right_of(start.left + 24, rates.get(arrow.channel)))
    return _svg(placed, drawn, width, top - BELOW + 4, "arrow-narrow", title)


def _feeders_first(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> list[str]:
    """The names of boxes so that every one comes after those that it reads, and directly after one of them."""
    order: list[str] = []

    def visit(name: str) -> None:
        for arrow in arrows:
            if arrow.end == name:
                visit(arrow.start)
        order.append(name)

    ends = {arrow.start for arrow in arrows}
    for box in boxes:
        if box.name not in ends:
            visit(box.name)
    return order


def _rate(left: float, top: float, rate: str | None) -> str:
    return "" if rate is None else f'<text class="rate" x="{left:.1f}" y="{top:.1f}">{escape(rate)}</text>'


def _right_of(left: float, rate: str | None) -> float:
    """Where a rate that begins there has surely ended."""
    return left + LETTER * len(rate or "") + 4


def _svg(
    placed: Mapping[str, Placed], drawn: Sequence[str], width: float, height: float, marker: str, title: str
) -> str:
    boxes = []
    for each in placed.values():
        boxes.append(
            f'<rect x="{each.left:.1f}" y="{each.top:.1f}" width="{each.width}" height="{each.height:.1f}" rx="6"/>'
        )
        for number, line in enumerate(each.lines):
            kind = ' class="heading"' if number == 0 else ""
            top = each.top + 6 + LINE * (number + 0.75)
            boxes.append(f'<text{kind} x="{each.left + 10:.1f}" y="{top:.1f}">{escape(line)}</text>')
    head = f'<marker id="{marker}" viewBox="0 0 6 6" refX="3" refY="3" markerWidth="7" markerHeight="7" orient="auto">'
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" {size}>'
        f'<defs>{head}<path d="M0 0 L6 3 L0 6 z"/></marker></defs>{"".join(drawn)}{"".join(boxes)}</svg>'
    )
