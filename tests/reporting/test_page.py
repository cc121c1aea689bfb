"""Pages: one file, nothing from outside, and whatever is told is told as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from streamjoin.reporting.charts import Line, Plot
from streamjoin.reporting.page import Section, Table, page
from tests.reporting.making import micro_batch, report

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
                  "Recall", "Urgent rows", "Backlog of the sources", "State: sorted runs"):  # fmt: skip
        assert title in everything
    plain = plots(replace(report(), batches=tuple(micro_batch(number) for number in range(4))).html())
    assert "Throughput" in plain
    assert not {"Recall", "Urgent rows", "Backlog of the sources"} & set(plain)
    assert "in files" not in replace(report(), batches=(micro_batch(0), micro_batch(1))).html()


def test_the_plan_has_rates_on_its_edges_and_says_how_latency_is_defined() -> None:
    text = report(2).html()
    # 600 + 610 rows of source 0, from the begin of the first to the end of the second micro-batch: 3.5 seconds.
    assert "1,210 rows, 346/s" in text
    assert "Spark&#x27;s last look at the sources before" in text
    assert text.count('class="narrow"') == 1


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
