"""Plots of benchmarks beside what every report has: values by name, and files of plots with a page that shows them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from streamjoin.reporting.charts import COLOURS as COLOURS
from streamjoin.reporting.charts import HEIGHT, Plot
from streamjoin.reporting.charts import Line as Line


@dataclass(frozen=True)
class Dots(Plot):
    """A plot whose x are names: that of a point is the one with the number `x`.

    >>> Dots("t", "", "y", [Line("a", [(0, 1), (1, 2)])], names=("one", "two")).svg()[:4]
    '<svg'
    """

    names: Sequence[str] = ()

    def _chart(self, width: Any) -> Any:
        import altair as alt

        drawn = super()._chart(width).to_dict()  # for axes, colours and style
        axis = alt.Axis(labelAngle=-40, labelLimit=260, labelOverlap=False)
        names = alt.X("name:N", title=self.x or None, sort=list(self.names), axis=axis)
        encoding = drawn["layer"][0]["encoding"]
        encoding["color"]["legend"] |= {"symbolType": "circle"}
        chart = alt.Chart(alt.Data(values=list(self._values()))).mark_point(filled=True, size=70, opacity=1)
        chart = chart.encode(
            x=names,
            y=alt.Y.from_dict(encoding["y"]),
            color=alt.Color.from_dict(encoding["color"]),
            tooltip=["line:N", "name:N", "y:Q"],
        )
        return chart.properties(width=width, height=HEIGHT).configure(**drawn["config"])

    def _values(self) -> Iterator[dict[str, Any]]:
        for value in super()._values():
            yield {**value, "name": self.names[int(value["x"])]}


def write_plots(folder: Path, title: str, plots: Mapping[str, Plot]) -> Path:
    """Write some plots, and a page that shows all that are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # questions that run side by side write to one folder
        return _write_plots(folder, title, plots)
    finally:
        os.close(lock)


def _write_plots(folder: Path, title: str, plots: Mapping[str, Plot]) -> Path:
    for name, plot in plots.items():
        (folder / f"{name}.svg").write_text(plot.svg())
    images = "".join(f'<p><img src="{escape(image.name)}" alt=""></p>' for image in sorted(folder.glob("*.svg")))
    page, heading = folder / "index.html", escape(title)
    page.write_text(f"<!doctype html><meta charset=utf-8><title>{heading}</title><h1>{heading}</h1>{images}\n")
    return page
