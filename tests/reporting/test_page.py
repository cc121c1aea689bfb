"""Pages: one file, nothing from outside, and whatever is told is told as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from streamjoin.algebra import Equals
from streamjoin.plan.explaining import parts_of
from streamjoin.plan.relation import Join, Projection
from streamjoin.reporting.charts import Line, Plot
from streamjoin.reporting.measured import MicroBatch, flat
from streamjoin.reporting.over_time import POINTS, Names, plots_of
from streamjoin.reporting.page import Section, Table, page
from streamjoin.reporting.plan_picture import LETTER, picture
from streamjoin.reporting.report import Report, ReportedPlan
from tests.plan.trees import lowered, stream
from tests.reporting.making import figures, micro_batch, plan, report

EVIL = '</script><img src="https://example.org/x.png" onerror="alert(1)">'


class Read(HTMLParser):
    """What a browser would make of a page: tags with attributes that load something, specifications, texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.specs, self.texts, self.inside = list[str](), list[str](), list[str](), ""
        self.loads = list[tuple[str, str]]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.inside = found.get("type") or "" if tag == "script" else tag
        self.loads += [(name, found[name] or "") for name in ("src", "href", "data", "srcset") if name in found]

    def handle_data(self, data: str) -> None:
        if self.inside == "application/json":
            self.specs.append(data)
        else:
            self.texts.append(data)


def test_a_page_loads_nothing() -> None:
    text = report(3).html()
    assert Read(text).loads == [("href", "data:,")]
    assert "@import" not in text.split("<body>")[0]
    assert "default-src 'none'" in text


def test_what_comes_from_a_query_is_text() -> None:
    made = replace(report(3), name=EVIL, error=EVIL, settings={EVIL: EVIL})
    plot = Plot(EVIL, EVIL, EVIL, [Line(EVIL, [(1, 1)])], [EVIL])
    for text in (made.html(), page(EVIL, [Section(EVIL, [EVIL, Table((EVIL,), [(EVIL,)]), plot])])):
        read = Read(text)
        assert "img" not in read.tags
        assert any("onerror" in each for each in read.texts)
        assert all(json.loads(spec)["$schema"] for spec in read.specs)


def test_a_page_shows_what_the_query_has() -> None:
    def plots(text: str) -> list[str]:
        return re.findall(r'<figure class="plot"><figcaption><h3>(.*?)</h3>', text)

    everything = plots(report().html())
    for title in ("Throughput", "Latency from arrival to sink", "State: rows", "State: bytes", "Late rows", "Lag",
                  "Recall", "Urgent rows", "Progress that stands", "Backlog of the sources: files",
                  "State: sorted runs", "State: spills and merges"):  # fmt: skip
        assert title in everything
    plain = plots(replace(report(), batches=tuple(micro_batch(number) for number in range(4))).html())
    assert "Throughput" in plain
    assert not {"Recall", "Urgent rows", "Progress that stands"} & set(plain)
    assert not [title for title in plain if title.startswith("Backlog")]
    assert "in files" not in replace(report(), batches=(micro_batch(0), micro_batch(1))).html()


def plots(made: Report) -> dict[str, Plot]:
    return {plot.title: plot for plot in plots_of(made.batches, Names(made.labels, made.inputs), made.time_unit)}


def test_what_is_told_per_micro_batch_is_so_of_joined_ones_too() -> None:
    made = report(POINTS * 4)
    drawn = plots(made)
    assert all(len(line.points) <= POINTS for plot in drawn.values() for line in plot.lines)
    assert {y for _, y in drawn["How long micro-batches take"].lines[0].points} == {1.5}
    packed = drawn["Where the time goes"].lines[0]
    assert [y for _, y in packed.points] == pytest.approx([0.2] * len(packed.points))
    assert max(y for _, y in drawn["Late rows"].lines[0].points) <= 2, "no micro-batch has more than two"


def test_every_line_of_a_plot_has_a_name_of_its_own() -> None:
    two = tuple(
        replace(each, figures={(name, *key[1:]): value for key, value in each.figures.items() for name in ("a", "b")})
        for each in report(3).batches
    )
    one, several = (
        report(3),
        replace(report(3), batches=two, plans=tuple(ReportedPlan(plan(), {name: 0}) for name in "ab")),
    )
    for made in (one, several):
        for drawn in plots(made).values():
            labels = [line.label for line in drawn.lines]
            assert len(set(labels)) == len(labels), drawn.title
            assert all(labels) or len(labels) == 1, drawn.title


def test_recall_does_not_begin_at_zero_and_less_than_one_row_is_no_thousand() -> None:
    drawn = plots(report(3))
    assert not drawn["Recall"].from_zero
    layer = drawn["Throughput"].spec["layer"][0]["encoding"]["y"]
    assert layer["axis"]["labelExpr"].startswith("abs(datum.value) < 1 ? format(datum.value, ',')")
    assert drawn["Recall"].spec["layer"][0]["encoding"]["y"]["scale"]["zero"] is False


def test_rows_that_left_at_the_end_are_rows_out() -> None:
    assert "<b>1,200</b><span>rows out</span>" in report(3).html()
    text = report(3, held=34).html()
    assert "<b>1,234</b><span>rows out</span>" in text
    assert "Finished: 34 of the rows out had still been held" in text


def test_rows_that_one_call_hands_to_another_neither_come_in_nor_go_out() -> None:
    """The first call hands its 400 rows to the second, which reads 1,000 rows of its own beside them."""
    first = dict(flat(figures(0, between={"in": 0, "out": 400}), "join-1"))
    second = dict(flat(figures(0, rows_in=1400, rows_out=70, between={"in": 400, "out": 0}), "join-2"))
    both = replace(micro_batch(0), figures=first | second)
    assert (both.total("rows_in"), both.total("rows_out")) == (2000, 70)
    again = both.followed_by(replace(both, first=1, last=1))
    assert (again.total("rows_in"), again.total("rows_out")) == (4000, 140)
    calls = tuple(ReportedPlan(plan(), {name: 0}) for name in ("join-1", "join-2"))
    made = replace(report(plans=calls), batches=(both,))
    assert made.figures()["rows_out"] == [70.0]
    assert "<b>2,000</b><span>rows in</span>" in made.html()
    assert "<b>70</b><span>rows out</span>" in made.html()


def test_spills_and_merges_are_told_per_micro_batch() -> None:
    drawn = plots(report(4))["State: spills and merges"]
    assert {line.label: [y for _, y in line.points] for line in drawn.lines} == {
        "spills": [1, 1, 1, 1], "merges": [1, 2, 1, 2],
    }  # fmt: skip
    plain = replace(report(), batches=tuple(micro_batch(number) for number in range(4)))
    assert [line.label for line in plots(plain)["State: spills and merges"].lines] == ["merges"]


def test_the_plan_has_rates_on_its_edges_and_says_how_latency_is_defined() -> None:
    text = report(2).html()
    # 600 + 610 rows of source 0, from the begin of the first to the end of the second micro-batch: 3.5 seconds.
    assert "1,210 rows, 346/s" in text
    assert "1,000 rows, 286/s" in text, "from the first stage to the second"
    assert "Spark&#x27;s last look at the sources before" in text
    assert text.count('class="narrow"') == 1


def test_rates_are_those_of_the_last_minute_while_a_query_runs_and_of_all_when_it_is_over() -> None:
    """An hour of 600 rows each two seconds, and then a minute of nothing."""
    made = tuple(replace(micro_batch(number), figures=BUSY if number < 1770 else QUIET) for number in range(1800))
    running = report(batches=1).html()
    assert "over the last 2 s before the last micro-batch was over (1 micro-batch)" in running
    text = replace(report(), batches=made).html()
    assert "1.06M rows, 0/s" in text
    assert "over the last 60 s before the last micro-batch was over (30 micro-batches)" in text
    text = replace(report(), batches=made, active=False).html()
    assert f"1.06M rows, {1770 * 600 / 3599.5:.0f}/s" in text
    assert "on average over all of the 3,600 s (1,800 micro-batches)" in text


BUSY = {("streamjoin-1", "rows_of", "0"): 600.0, ("streamjoin-1", "rows_in"): 600.0}
QUIET = dict.fromkeys(BUSY, 0.0)


def test_a_page_says_of_how_many_micro_batches_the_latency_is_known_and_why_not_of_the_others() -> None:
    def left(number: int, why: str) -> MicroBatch:
        return replace(micro_batch(number), unseen=None, left_out={why: 1})

    some = (left(0, "first"), left(1, "behind"), left(2, "behind"), micro_batch(3))
    said = "Latency is known of 1 of 4 micro-batches. Left out, because nobody knows how long their rows had waited: "
    for batches in (some, (some[0].followed_by(some[1]), some[2].followed_by(some[3]))):
        assert said + "2 (behind), 1 (first)." in replace(report(), batches=batches).html()
    assert "Latency is known of no micro-batch." in replace(report(), batches=some[:3]).html()
    assert "Latency is known" not in replace(report(), batches=some[3:]).html()


def test_a_query_that_ran_over_midnight_says_on_which_day_it_ended() -> None:
    assert "2023-11-14 22:13:20 to 22:14:19 UTC." in report(30).html()
    assert (
        "2023-11-14 22:13:20 to 2023-11-15 22:13:21 UTC."
        in replace(report(), batches=(micro_batch(0), micro_batch(12 * 3600))).html()
    )


def test_two_inputs_that_read_the_same_source_have_names_of_their_own() -> None:
    join = Join(stream("R"), stream("R"), (Equals("R.k", "R.k"),))
    twice = lowered(Projection(join, (("id", "`R.id`"),)), lateness=2)
    other = lowered(Join(stream("R"), stream("S"), (Equals("R.k", "S.k"),)), lateness=2)
    assert ReportedPlan(other, {}).input_names(0) == ["stream R", "stream S"]
    assert ReportedPlan(twice, {}).input_names(0) == ["stream R, input 0", "stream R, input 1"]


def test_a_long_rate_is_within_the_picture() -> None:
    boxes, arrows = parts_of(plan())
    short, long = (dict.fromkeys(range(9), rate) for rate in ("7", "9" * 80))
    widths = [
        [float(each) for each in re.findall(r'<svg [^>]*viewBox="0 0 ([\d.]+)', picture(boxes, arrows, rates))]
        for rates in (short, long)
    ]
    starts = [float(each) for each in re.findall(r'class="rate" x="([\d.]+)"', picture(boxes, arrows, long))]
    assert len(widths[0]) == len(widths[1]) == 2, "beside each other, and for a phone"
    assert max(widths[1]) >= max(starts) + 80 * LETTER
    assert all(wide > narrow for narrow, wide in zip(*widths, strict=True))


def test_a_report_without_micro_batches_and_one_that_failed() -> None:
    empty = replace(report(), batches=(), plans=(), active=False, error="line one\nline two")
    text = empty.html()
    assert "No micro-batch is over yet." in text
    assert '<pre class="warn">line one\nline two</pre>' in text
    assert empty.title == "orders and payments: failed"


def test_a_page_that_is_served_says_how_often_it_asks() -> None:
    assert '<meta name="refresh-seconds" content="2">' in report(2).html(refresh=2)
    assert "refresh-seconds" not in report(2).html().split("<body>")[0]
    assert report(2).main().startswith("<main>")


def test_writing_leaves_one_whole_file(tmp_path: Path) -> None:
    place = report(2).write(tmp_path / "new" / "out.html")
    assert [each.name for each in place.parent.iterdir()] == ["out.html"]
    assert place.read_text().endswith("</html>\n")
    with pytest.raises(IsADirectoryError):
        report(2).write(tmp_path / "new")
    assert [each.name for each in tmp_path.iterdir()] == ["new"], "nor half of one"


def test_a_plan_with_a_court_has_a_rate_where_results_leave() -> None:
    judged = lowered(Join(stream("R"), stream("S"), how="full"), lateness=2)
    made = report(2, plans=(ReportedPlan(judged, {"streamjoin-1": 0}),))
    assert len(judged.stages) == 2
    assert "800 rows, 229/s" in made.html()
