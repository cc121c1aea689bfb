"""A fragment: in which order operators hear of what, and what becomes of their results between them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.algebra import FOREVER
from streamjoin.operators import Multiplicity, Output, Results, Rows, RowWindow
from streamjoin.operators.contract import CLAIMANT, Context, Footprint
from streamjoin.operators.row_window import in_order
from streamjoin.runtime import fragment as fragments
from streamjoin.runtime.binding import RowBinding
from streamjoin.runtime.fragment import KEEP, UNBOUNDED, Entry, Fragment, Held, Inner, Node, Room
from streamjoin.state import Batch, Ends, Snapshot
from tests.state.making import batch, ids
from tests.state.storing import Store

SCHEMA = pa.schema([("a", pa.string())])
LOG = list[tuple[Any, ...]]


@dataclass
class Recording:
    """An operator that writes down what it hears, and passes rows on as they come."""

    name: str
    log: LOG
    context: Context = Context()  # noqa: RUF009
    progress: int = 0
    figures: dict[str, int] = field(default_factory=lambda: {"ghosts": 1})
    footprint: Footprint = Footprint(2, 80, 1)  # noqa: RUF009
    areas: int = 0

    def build(self, context: Context) -> Recording:
        return Recording(self.name, self.log, context)

    def on_batch(self, number: int, rows: Batch) -> Iterator[Output]:
        self.log.append((self.name, "rows", number, ids(rows)))
        yield Results(rows.payload, rows.ts, rows.te)

    def on_batches_end(self) -> Iterator[Output]:
        self.log.append((self.name, "all rows"))
        yield from ()

    def on_ends(self, number: int, ends: Ends) -> Iterator[Output]:
        self.log.append((self.name, "ends", number, ends.te.tolist()))
        yield ends

    def on_seen(self, number: int, largest: int) -> None:
        self.log.append((self.name, "seen", number, largest))

    def on_progress(self, number: int, time: int) -> Iterator[Output]:
        self.log.append((self.name, "progress", number, time))
        self.progress = time
        yield from ()

    def on_end(self) -> Iterator[Output]:
        self.log.append((self.name, "end"))
        yield Ends(np.array([3]), np.array([FOREVER]))


NAMES = ("id", "note")


def chain(log: LOG) -> Fragment:
    """Two operators, one above the other; the second has an input of its own."""
    one, two = Recording("one", log), Recording("two", log)
    return Fragment([Node(one, (Entry(0),), NAMES), Node(two, (Entry(1), Inner(0, RowBinding(NAMES))), NAMES, 1)], 3)


def test_contract_rows_then_ends_then_progress_children_first() -> None:
    log: LOG = []
    rows = {0: batch([(1, 2)], ids=[10]), 1: batch([(1, 2)], ids=[11])}
    left = list(chain(log).run(rows, {0: [Ends(np.array([3]), np.array([7]))]}, [5, 6]))
    assert log == [
        ("one", "rows", 0, [10]), ("two", "rows", 1, [10]), ("one", "all rows"), ("one", "ends", 0, [7]),
        ("one", "progress", 0, 5), ("two", "rows", 0, [11]), ("two", "all rows"), ("two", "ends", 1, [7]),
        ("two", "progress", 0, 6), ("two", "progress", 1, 5),
    ]  # fmt: skip
    assert [type(output) for output in left] == [Results, Results, Ends], "what the last one says leaves"


def test_contract_the_end_comes_to_each_after_all_ends_below() -> None:
    log: LOG = []
    assert [type(output) for output in chain(log).end()] == [Ends, Ends]
    assert log == [("one", "end"), ("two", "ends", 1, [FOREVER]), ("two", "end")]


def test_inputs_without_news_are_left_out() -> None:
    log: LOG = []
    assert list(chain(log).run({0: batch([])}, {}, [5, 6])) == []
    assert [entry for entry in log if entry[1] in ("rows", "ends")] == []


def test_what_a_source_has_shown_is_told_to_who_reads_it() -> None:
    log: LOG = []
    chain(log).seen({0: 8, 1: 9})
    assert log == [("one", "seen", 0, 8), ("two", "seen", 0, 9)]


def test_what_is_known_and_kept() -> None:
    fragment = chain([])
    list(fragment.run({}, {}, [5, 6]))
    assert fragment.progress == 5, "that of the last operator"
    assert (fragment.footprint, fragment.figure("ghosts")) == (Footprint(4, 160, 2), 2)
    assert [operator.context.bucket for operator in fragment.operators] == [3, 3]
    assert [operator.context.producer for operator in fragment.operators] == [0, 1]


def test_rows_that_other_buckets_decide_about_leave_by_the_last_node() -> None:
    class Undecided(Recording):
        def build(self, context: Context) -> Recording:
            return self

        def on_batches_end(self) -> Iterator[Output]:
            yield Rows(CLAIMANT, 0, batch([(1, 2)]))

    wrong = Undecided("one", [])
    (claimant,) = Fragment([Node(wrong, (Entry(0),), NAMES)], 0).run({}, {}, [1])
    assert isinstance(claimant, Rows)
    nodes = [Node(wrong, (Entry(0),), NAMES), Node(Recording("two", []), (Inner(0, RowBinding(NAMES)),), NAMES)]
    with pytest.raises(AssertionError, match="leave by the last node"):
        list(Fragment(nodes, 0).run({}, {}, [1]))


# Waves ---------------------------------------------------------------------------------------------------------------


class Ranking(Recording):
    """Passes rows on in two pieces, each with those that are urgent first: rows with odd ids become urgent here."""

    def build(self, context: Context) -> Recording:
        return self

    def on_batch(self, number: int, rows: Batch) -> Iterator[Output]:
        self.log.append((self.name, "rows", number, ids(rows)))
        half = (len(rows) + 1) // 2
        for some in (rows.part(0, half), rows.part(half, len(rows))):
            numbers = np.array(ids(some), np.int64)
            for which, priority in ((numbers % 2 == 1, 5), (numbers % 2 == 0, None)):
                part = some.take(which)
                own = None if priority is None else np.full(len(part), priority)
                yield Results(part.payload, part.ts, part.te, priority=own)


def waves(log: LOG, room: Room = UNBOUNDED) -> Fragment:
    """Three operators, one above the other, each with an input of its own."""
    nodes = [Node(Ranking("0", log), (Entry(0),), NAMES)]
    nodes += [Node(Ranking(f"{n}", log), (Inner(n - 1, RowBinding(NAMES)), Entry(n)), NAMES) for n in (1, 2)]
    return Fragment(nodes, 0, room, prioritised=True)


def rows_of(numbers: list[int], priority: int | None = None) -> Batch:
    rows = batch([(1, 2)] * len(numbers), ids=numbers)
    return rows if priority is None else replace(rows, priority=np.full(len(rows), priority))


def in_waves(log: LOG, room: Room = UNBOUNDED) -> list[int]:
    """The ids that leave, in order, of a micro-batch that brings rows to all three."""
    urgent = {0: rows_of([1, 3, 5], 5), 1: rows_of([11, 13], 5), 2: rows_of([21], 5)}
    others = {0: rows_of([2, 7, 4, 9, 6]), 1: rows_of([12, 17, 14]), 2: rows_of([22, 24])}
    left = waves(log, room).run(others, {}, [5, 5, 5], urgent)
    return [number for each in left for number in ids(each.payload)]


def test_waves_urgent_rows_then_the_others_node_by_node_and_what_became_urgent_after_each_turn() -> None:
    log: LOG = []
    left = in_waves(log)
    heard = [entry for entry in log if entry[1] in ("rows", "progress")]
    assert heard == [
        # the urgent rows: each operator has them in one batch, however many pieces the one before made of them
        ("0", "rows", 0, [1, 3, 5]), ("1", "rows", 0, [1, 3, 5]), ("1", "rows", 1, [11, 13]),
        ("2", "rows", 0, [1, 3, 5, 11, 13]), ("2", "rows", 1, [21]),
        # the others: what has become urgent in a turn passes all above before the next turn
        ("0", "rows", 0, [2, 7, 4, 9, 6]), ("1", "rows", 0, [7, 9]), ("2", "rows", 0, [7, 9]),
        ("1", "rows", 1, [12, 17, 14]), ("1", "rows", 0, [2, 4, 6]), ("2", "rows", 0, [17]),
        ("2", "rows", 1, [22, 24]), ("2", "rows", 0, [12, 14, 2, 4, 6]),
        # progress last
        ("0", "progress", 0, 5), ("1", "progress", 0, 5), ("1", "progress", 1, 5), ("2", "progress", 0, 5),
        ("2", "progress", 1, 5),
    ]  # fmt: skip
    assert left == [1, 3, 5, 11, 13, 21, 7, 9, 17, 22, 24, 12, 14, 2, 4, 6], "urgent ones first"


def test_many_urgent_results_do_not_wait_for_the_end_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    log: LOG = []
    wanted = sorted(in_waves(log))
    monkeypatch.setattr(fragments, "URGENT_BYTES", 1)
    straight: LOG = []
    assert sorted(in_waves(straight)) == wanted
    assert straight[:4] == [
        ("0", "rows", 0, [1, 3, 5]), ("1", "rows", 0, [1, 3]), ("2", "rows", 0, [1]), ("2", "rows", 0, [3])
    ]  # fmt: skip


def test_results_that_wait_go_on_when_they_are_an_eighth_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    most = [0]

    def add(self: Held, results: Results) -> int:
        found = real(self, results)
        most.append(found - results.nbytes)  # what had waited before
        return found

    real = Held.add
    monkeypatch.setattr(Held, "add", add)
    wanted = sorted(in_waves([]))
    unlimited, one = max(most), rows_of([2]).nbytes
    most.clear()
    straight: LOG = []
    assert sorted(in_waves(straight, Room(memory=8 * one))) == wanted
    assert max(most) < one < unlimited
    heard = [entry[3] for entry in straight if entry[:3] == ("1", "rows", 0)]
    assert [2, 4] in heard, "in the pieces in which they were made: 6 has come by itself"


def test_what_has_waited_is_let_go_before_its_reader_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    held, instant = Held(), np.array([1])
    waiting = [Results(pa.table({"a": [str(number)]}), instant + number, instant + 9) for number in range(5)]
    monkeypatch.setattr(fragments, "RESULT_BYTES", 2 * waiting[0].nbytes)
    for each in waiting:
        held.add(each)
    alive = [weakref.ref(each.ts) for each in waiting]
    del each, waiting
    left = [(piece.payload["a"].to_pylist(), sum(ref() is not None for ref in alive)) for piece in held.pieces()]
    # The last one goes on as it is, alone, and the others have been copied into their piece.
    assert left == [(["0", "1"], 3), (["2", "3"], 1), (["4"], 1)]
    assert list(held.pieces()) == []


class Mixing(Ranking):
    """Passes rows on as they are, urgent and other ones in one piece; notes whether those that come have priorities."""

    def on_batch(self, number: int, rows: Batch) -> Iterator[Output]:
        self.log.append((self.name, "rows", number, (ids(rows), rows.priority is not None)))
        numbers = np.array(ids(rows), np.int64)
        yield Results(rows.payload, rows.ts, rows.te, priority=np.where(numbers % 2 == 1, 5, 0))


def test_rows_that_are_not_urgent_wait_without_a_priority() -> None:
    log: LOG = []
    nodes = [Node(Mixing("0", log), (Entry(0),), NAMES), Node(Mixing("1", log), (Inner(0, RowBinding(NAMES)),), NAMES)]
    list(Fragment(nodes, 0, prioritised=True).run({0: rows_of([1, 2, 3, 4])}, {}, [5]))
    heard = [entry[2:] for entry in log if entry[:2] == ("1", "rows")]
    assert heard == [(0, ([1, 3], True)), (0, ([2, 4], False))], "areas keep the others apart from urgent ones"


# Names ---------------------------------------------------------------------------------------------------------------


def marked(*keep: bool) -> Results:
    payload = pa.table({"0.a": [f"row {number}" for number in range(len(keep))], "0.keep": list(keep)})
    return Results(payload, np.arange(len(keep)), np.arange(len(keep)) + 5, holder=np.arange(len(keep)))


def test_results_get_the_names_of_the_relation_without_those_that_a_selection_drops() -> None:
    node = Node(None, (), ("a", KEEP), kept=True)
    some = node.named(marked(True, False, True))
    assert some.payload.to_pydict() == {"a": ["row 0", "row 2"]}
    assert (some.ts.tolist(), some.holder.tolist()) == ([0, 2], [0, 2])
    assert len(node.named(marked(False))) == 0
    alone = Results(pa.table({"keep": [True]}), np.array([1]), np.array([2]))
    assert Node(None, (), (KEEP,), kept=True).named(alone).payload.num_columns == 0


def test_columns_are_picked_under_other_names() -> None:
    node = Node(None, (), ("a", "b"), pick=(("x", "b"), ("y", "b")))
    some = Results(pa.table({"0": [1], "1": [2]}), np.array([1]), np.array([2]))
    assert node.named(some).payload.to_pydict() == {"x": [2], "y": [2]}


# Row windows ---------------------------------------------------------------------------------------------------------


def arrived(times: list[int], groups: list[str], order: list[int]) -> Batch:
    proof = pa.table({"by": groups, "arrival": order})
    return batch([(time, FOREVER) for time in times], ids=range(len(times)), proof=proof)


def test_rows_of_a_row_window_are_put_in_order_of_time_and_then_of_arrival() -> None:
    rows = in_order(arrived([5, 2, 5, 5], ["x", "y", "x", "z"], [9, 1, 3, 4]), 1)
    assert ids(rows) == [1, 2, 3, 0]
    assert rows.proof.to_pydict() == {"by": ["y", "x", "z", "x"]}, "who came first goes no further"
    assert in_order(arrived([5, 2], ["x", "y"], [9, 1]), 0).proof is None
    there = arrived([2, 5], ["x", "y"], [9, 1])
    assert in_order(there, 0).payload is there.payload, "nothing is moved where all is in order"
    assert in_order(there, 1).proof.to_pydict() == {"by": ["x", "y"]}
    assert ids(in_order(batch([(5, 6), (2, 6)]), 0)) == [1, 0]


def test_contract_a_restored_fragment_goes_on_alike() -> None:
    """A row that is marked pushes another one out, whose end is all that the operator above hears of it."""
    schema = pa.schema([*SCHEMA, (KEEP, pa.bool_())])
    nodes = [
        Node(RowWindow(1, pa.schema([])), (Entry(0, 0),), tuple(schema.names), 0, kept=True),
        Node(Multiplicity("distinct", SCHEMA), (Inner(0, RowBinding(("a",))),), ("a",), 1),
    ]
    steady, restarted, stores, said = Fragment(nodes, 0), Fragment(nodes, 0), [Store(), Store()], []
    for time in range(8):
        payload = pa.table([[f"{time // 2}"], [time % 2 == 0]], schema=schema)
        rows = Batch(payload, np.array([time]), np.array([FOREVER]), np.zeros(1, np.int64))
        both = [list(each.run({0: rows}, {}, [time])) for each in (steady, restarted)]
        assert [_shown(each) for each in both[0]] == [_shown(each) for each in both[1]]
        said += [_shown(each) for each in both[0]]
        for store, snapshot in zip(stores, restarted.snapshots(), strict=True):
            store.save(snapshot)
        restarted = Fragment(nodes, 0)
        restarted.restore([store.load() for store in stores])
        assert restarted.footprint.rows == steady.footprint.rows
    assert [te for kind, te in said if kind == "ends"] == [[1], [3], [5]]


def _shown(output: Output) -> tuple[str, list[int]]:
    return ("ends" if isinstance(output, Ends) else "results"), output.te.tolist()


def test_a_snapshot_is_one_for_each_operator() -> None:
    snapshots = Fragment([Node(RowWindow(1, pa.schema([])), (Entry(0, 0),), ("a",))], 0).snapshots()
    assert [type(each) for each in snapshots] == [Snapshot]
