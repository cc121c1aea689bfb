"""Plots: what they draw, and how numbers and lines are told apart."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from streamjoin.reporting.charts import COLOURS, SELDOM, Line, Plot

LINES = [Line("measured", [(1, 10), (10, 1000), (1000, 20)]), Line("claimed", [(1, 20), (1000, 40)], dashed=True)]


def texts(svg: str) -> list[str]:
    return [text for each in ElementTree.fromstring(svg).iter() if (text := (each.text or "").strip())]


@pytest.mark.parametrize("linear", [True, False])
def test_a_plot_has_a_title_axes_with_units_a_legend_and_words(linear: bool) -> None:
    svg = Plot("How much", "seconds", "rows kept", LINES, ["Words about it."], linear=linear).svg()
    written = texts(svg)
    assert {"How much", "seconds", "rows kept", "measured", "claimed", "Words about it."} <= set(written)
    assert "1,000" in written, "numbers are written as people do"
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg)


def test_what_is_claimed_is_dashed_and_has_no_points() -> None:
    spec = Plot("How much", "seconds", "rows", LINES).spec
    lines, points = spec["layer"]
    dashes = lines["encoding"]["strokeDash"]["scale"]
    assert dict(zip(dashes["domain"], dashes["range"], strict=True)) == {"measured": [1, 0], "claimed": [6, 4]}
    assert points["transform"] == [{"filter": "datum.point"}]
    assert {each["line"] for each in spec["data"]["values"] if each["point"]} == {"measured"}


def test_lines_have_colours_of_their_own_unless_they_are_given() -> None:
    lines = [Line("a", [(1, 1)]), Line("b", [(1, 2)], "#123456"), Line("c", [(1, 3)])]
    colours = Plot("t", "x", "y", lines).spec["layer"][0]["encoding"]["color"]["scale"]["range"]
    assert colours == [COLOURS[0], "#123456", COLOURS[2]]


def test_long_words_are_broken_into_lines() -> None:
    written = texts(Plot("t", "x", "y", LINES, ["word " * 60]).svg())
    assert all(len(each) <= 90 for each in written)
    assert sum("word" in each for each in written) == 4


def test_importing_streamjoin_does_not_import_the_library() -> None:
    code = "import sys, streamjoin as sj; sj.report; sys.exit('altair' in sys.modules or 'vl_convert' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_reports_does_not_hide_the_function() -> None:
    import streamjoin as sj
    import streamjoin.reporting.report

    assert callable(sj.report)
    assert streamjoin.reporting.report.Report.__name__ == "Report"


@pytest.mark.parametrize(("points", "dashed", "layers"), [(SELDOM, False, 2), (SELDOM + 1, False, 1), (2, True, 1)])
def test_points_that_are_not_drawn_are_no_layer(points: int, dashed: bool, layers: int) -> None:
    """Vega warns of a layer without data, on the console of whoever looks at the page."""
    plot = Plot("t", "x", "y", [Line("a", [(at, 1.0) for at in range(points)], dashed=dashed)], linear=True)
    assert len(plot.spec["layer"]) == layers
    assert len(plot.spec["data"]["values"]) == points


def test_time_goes_by_evenly_beside_a_logarithmic_axis() -> None:
    points = [(0.0, 0.5), (60.0, 20.0), (120.0, 80.0)]
    plot = Plot("waits", "second", "s", [Line("a", points)], linear_x=True)
    across, up = (plot.spec["layer"][0]["encoding"][axis]["scale"] for axis in ("x", "y"))
    assert across["zero"]
    assert up["type"] == "log"
    assert "second" in plot.svg()
