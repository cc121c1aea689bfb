"""Pages in a real browser, on a phone and on a desk, in the light and in the dark; and a page that changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from benchmarks import all_questions
from benchmarks.asking.registry import COMMANDS
from benchmarks.bench_table import page_of
from streamjoin.cli import app
from streamjoin.reporting.live import LivePage
from streamjoin.reporting.report import Report
from tests.browser.looking import COLOURS, check, check_tables, opened
from tests.reporting.making import report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.browser]
PHONE, DESK = 360, 1440
PIXELS = pytest.mark.parametrize("width", [PHONE, DESK])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with every plot that there is, of a query that failed."""
    place = tmp_path_factory.mktemp("report") / "report.html"
    return report(40, error="a long reason " * 30).write(place).as_uri()


@pytest.fixture(scope="module")
def demo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a query that has really run: the demo's."""
    place = tmp_path_factory.mktemp("demo") / "report.html"
    result = CliRunner().invoke(app, ["demo", "--seconds", "20", "--report", str(place)])
    assert result.exit_code == 0, result.output
    return place.as_uri()


@PIXELS
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_fits_and_can_be_read(browser: Any, made: str, width: int, scheme: str) -> None:
    with opened(browser, made, width, scheme) as page:
        check(page, width)
        colours = page.evaluate(COLOURS)
        paper, inks = colours["paper"], (colours["ink"], colours["label"])
        assert (paper > 0.9 and max(inks) < 0.4) if scheme == "light" else (paper < 0.2 and min(inks) > 0.6)


@PIXELS
def test_a_page_of_very_many_micro_batches_and_one_of_a_single_one(browser: Any, tmp_path: Path, width: int) -> None:
    for batches in (1, 1000):
        with opened(browser, report(batches).write(tmp_path / "report.html").as_uri(), width) as page:
            check(page, width)


def test_a_window_that_is_made_smaller_has_plots_that_fit(browser: Any, made: str) -> None:
    with opened(browser, made, DESK) as page:
        page.set_viewport_size({"width": PHONE, "height": 900})
        page.wait_for_function("[...document.querySelectorAll('.plot svg')].every((each) => each.clientWidth <= 340)")
        check(page, PHONE)


def test_a_printed_page_is_as_wide_as_paper_and_black_on_white(browser: Any, made: str) -> None:
    with opened(browser, made, 720, "dark") as page:
        page.emulate_media(media="print", color_scheme="light")
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        colours = page.evaluate(COLOURS)
        assert colours["paper"] == 1
        assert max(colours["ink"], colours["label"]) < 0.1


@PIXELS
def test_the_report_of_the_demo(browser: Any, demo: str, width: int, screenshots: Path) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, demo, width, scheme) as page:
            check(page, width)
            titles = page.locator("figure.plot h3").all_text_contents()
            assert {"Throughput", "Latency from arrival to sink", "State: rows", "Late rows", "Lag"} <= set(titles)
            assert page.locator(".plan .rate:visible").count() == 3
            if (width, scheme) != (PHONE, "light"):
                height = 1000 if width == DESK else 1400
                page.screenshot(
                    path=screenshots / f"report-{width}-{scheme}.png",
                    clip={"x": 0, "y": 0, "width": width, "height": height}, full_page=True,
                )  # fmt: skip


@PIXELS
def test_the_live_page_shows_what_is_new_and_keeps_its_place(browser: Any, width: int, screenshots: Path) -> None:
    batches = iter(range(30, 1000))
    live = LivePage(lambda: report(next(batches)))
    live.start()
    try:
        with opened(browser, live.address, width) as page:
            check(page, width)
            tile = page.locator(".tiles b").first
            before = tile.text_content()
            page.evaluate("window.scrollTo(0, 700)")
            page.wait_for_function(f"document.querySelector('.tiles b').textContent !== '{before}'")
            page.wait_for_function("document.querySelectorAll('figure.plot svg').length > 5")
            assert page.evaluate("window.scrollY") == 700
            check(page, width)
            height = 1000 if width == DESK else 1400
            page.screenshot(
                path=screenshots / f"live-{width}.png",
                clip={"x": 0, "y": 0, "width": width, "height": height}, full_page=True,
            )  # fmt: skip
            live.stop()
            page.wait_for_function("document.title.endsWith('(no longer served)')")
            page.said.clear()  # the browser itself says that nobody answered
    finally:
        live.stop()


@PIXELS
def test_claims_and_goals_are_beside_what_was_measured(browser: Any, tmp_path: Path, width: int) -> None:
    """The pages of `reproduce`, with plots and sentences of a quick run, and of `bench all`, of the stored figures."""
    claims, goals = tmp_path / "claims.html", tmp_path / "goals.html"
    told = CliRunner().invoke(app, ["reproduce", "--quick", "--only", "best-window,life-share", "--to", str(claims)])
    assert told.exit_code == 0, told.output
    goals.write_text(page_of(list(COMMANDS.values()), all_questions.read(all_questions.STORED), quick=False))
    for place in (claims, goals):
        with opened(browser, place.as_uri(), width) as page:
            check_tables(page, width)


# Counts the views that have been drawn since, and not been given up.
COUNT_VIEWS = """() => {
  const own = window.vegaEmbed;
  window.views = 0;
  window.redrawn = 0;
  window.vegaEmbed = async (...told) => {
    const made = await own(...told), end = made.finalize;
    window.views += 1;
    window.redrawn += 1;
    made.finalize = () => { window.views -= 1; end.call(made); };
    return made;
  };
}"""


def test_the_live_page_goes_on_after_an_error_and_gives_up_what_it_drew_before(browser: Any) -> None:
    asked = iter(range(1000))

    def latest() -> Report:
        number = next(asked)
        if number == 1:
            raise RuntimeError("being restarted")
        return report(2 + number)

    live = LivePage(latest)
    live.start()
    try:
        with opened(browser, live.address, PHONE) as page:
            figures = page.locator("figure.plot").count()
            page.evaluate(COUNT_VIEWS)
            page.wait_for_function(f"window.redrawn >= {3 * figures}")
            assert page.evaluate("window.views") == figures
            page.said.clear()  # the browser itself says that an answer was an error
    finally:
        live.stop()
