"""Plots with logarithmic axes, or linear ones, as SVG, written by hand: a few lines, a legend, some words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 40, 40, 146
LETTERS = 78  # of a line of words below the plot


@dataclass(frozen=True)
class Line:
    """Points `(x, y)`, positive if axes are logarithmic, in one colour; dashed for what is claimed, not measured."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Plot:
    """A plot: what the axes show, the lines, and words below it."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    words: Sequence[str] = ()
    linear: bool = False

    def svg(self) -> str:
        """The plot as an SVG document.

        >>> Plot("t", "x", "y", [Line("a", [(1, 1), (10, 2)], "black")]).svg()[:4]
        '<svg'
        """
        xs = [x for line in self.lines for x, _ in line.points]
        ys = [y for line in self.lines for _, y in line.points]
        axis = _linear if self.linear else _axis
        across, up = axis(min(xs), max(xs)), axis(min(ys), max(ys))

        def place(x: float, y: float) -> tuple[float, float]:
            right = LEFT + across.share(x) * (WIDTH - LEFT - RIGHT)
            return right, HEIGHT - BOTTOM - up.share(y) * (HEIGHT - TOP - BOTTOM)

        drawn = [_text(LEFT, TOP - 18, self.title, size=15)]
        for tick in across.ticks:
            at, _ = place(tick, up.low)
            drawn += [_rule(at, TOP, at, HEIGHT - BOTTOM), _text(at, HEIGHT - BOTTOM + 16, _number(tick), "middle")]
        for tick in up.ticks:
            _, at = place(across.low, tick)
            drawn += [_rule(LEFT, at, WIDTH - RIGHT, at), _text(LEFT - 6, at + 4, _number(tick), "end")]
        drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, self.x, "middle"))
        drawn.append(_text(LEFT, TOP - 4, self.y))
        for number, line in enumerate(self.lines):
            drawn += _drawn(line, [place(x, y) for x, y in line.points])
            row, column = divmod(number, 2)
            left, top = LEFT + 280 * column, HEIGHT - BOTTOM + 54 + 16 * row
            dash = ' stroke-dasharray="6 4"' if line.dashed else ""
            drawn.append(
                f'<line x1="{left}" y1="{top - 4}" x2="{left + 24}" y2="{top - 4}" stroke="{line.colour}" '
                f'stroke-width="2"{dash}/>'
            )
            drawn.append(_text(left + 30, top, line.label))
        rows = -(-len(self.lines) // 2)
        below = [part for words in self.words for part in wrap(words, LETTERS)]
        for number, part in enumerate(below):
            drawn.append(_text(LEFT, HEIGHT - BOTTOM + 58 + 16 * (rows + number), part, colour="#666"))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>{"".join(drawn)}</svg>\n'
        )


@dataclass(frozen=True)
class Axis:
    """An axis, logarithmic unless it is linear."""

    low: float
    high: float
    ticks: tuple[float, ...]
    linear: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between the ends, from 0 to 1."""
        if self.linear:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)


def _number(value: float) -> str:
    """A number as readers write it.

    >>> _number(1e6), _number(0.5)
    ('1,000,000', '0.5')
    """
    return f"{value:,.0f}" if value == round(value) or value >= 10 else f"{value:g}"


def _axis(low: float, high: float) -> Axis:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 4 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    below = max((tick for tick in ticks if tick <= low * 1.0001), default=low)
    above = min((tick for tick in ticks if tick >= high * 0.9999), default=high)
    above = above if above > below else 10 * below
    return Axis(below, above, tuple(tick for tick in ticks if below <= tick <= above))


def _linear(low: float, high: float) -> Axis:
    """About five steps, from zero.

    >>> _linear(3, 42).ticks
    (0, 10.0, 20.0, 30.0, 40.0, 50.0)
    """
    rough = max(high, 1e-9) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.9999)
    count = math.ceil(high / step - 1e-9)
    return Axis(0, count * step, tuple(number * step for number in range(count + 1)), linear=True)


def _drawn(line: Line, places: Sequence[tuple[float, float]]) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dash = ' stroke-dasharray="6 4"' if line.dashed else ""
    drawn = [f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>']
    if not line.dashed:
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{line.colour}"/>' for x, y in places]
    return drawn


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, words: str, anchor: str = "start", size: int = 12, colour: str = "black") -> str:
    how = f'text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {how}>{escape(words)}</text>'
