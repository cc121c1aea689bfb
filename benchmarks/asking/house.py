"""`streamjoin bench house`: this state of the code against an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import checkouts, house, house_restore, house_start, house_tables, streaming
from benchmarks.asking.command import Asked, Command, Described, Question
from benchmarks.reporting import Outcomes, progress


def _rounds(asked: Asked) -> int:
    return asked.rounds or (1 if asked.quick else house.ROUNDS)


def _against(asked: Asked) -> Described:
    earlier, times = checkouts.named(asked.against), _rounds(asked)
    whom = "nothing earlier" if earlier is None else f"against {earlier.name}"
    figures = {"rounds": times, "against": earlier and earlier.name}
    return Described(f"{whom}; {times} rounds in turn, medians", figures)


def _house(asked: Asked, folder: Path) -> Outcomes:
    earlier, quick = checkouts.named(asked.against), asked.quick
    with progress(asked.console) as say, checkouts.checkouts(earlier, folder) as states:
        home = house.House(streaming.Track(folder, say), states, _rounds(asked))
        if set(asked.names) != {"restore"}:
            home.prepare()
        for question, measure in house.MEASURES.items():
            if question in asked.names:
                measured = measure(home, quick)
                yield question, measured.verdicts, measured, house_tables.house_table(measured)
        if "start" in asked.names:
            for started in house_start.measure(home, quick):
                name = f"start, {house_start.TIMES[started.which]}"
                yield name, started.verdicts, started, house_tables.start_table(started)
        if "restore" in asked.names:
            say("restoring, all states in turn ...")
            for restored in house_restore.measure(states, quick, _rounds(asked), folder / "restore"):
                yield f"restore, {restored.job}", restored.verdicts, restored, house_tables.restore_table(restored)


COMMAND: Final = Command(
    "house",
    (
        Question("equality", "the equality join beside the floor", "the floor, an earlier state",
                 f"at most {house.ADDED_PERCENT:g}% above the floor; not slower", 10),
        Question("group", "a join with GROUP BY on its key", "the join alone, an earlier state",
                 f"at most {house.GROUPED:g} times the join", 10),
        Question("small", "micro-batches of 1,000 rows", "an earlier state",
                 f"{house.SMALL_QUERY:g} times as fast", 8, earlier=True),
        Question("start", "from the call to the end of the first micro-batch", "an earlier state",
                 f"{house_start.FASTER:g} times as fast", 8, earlier=True),
        Question("restore", "a large state of many small parts", "an earlier state", "not slower", 4, earlier=True),
    ),
    _house, _against,
)  # fmt: skip
