"""Is state bounded? A stream over a hundred windows of event time, and a last row that moves progress past all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from benchmarks.race import Verdict
from benchmarks.streaming import Track
from benchmarks.streams import BATCH_US, Stream, usual_step

ROWS: Final = 200_000
QUICK_ROWS: Final = 20_000
BOUND_SECONDS: Final = 2
WINDOWS: Final = 100
GROWTH: Final = 1.2  # of what the second half of the run keeps, over the first


@dataclass(frozen=True)
class BoundedOutcome:
    """What was kept after each micro-batch; the last one has only the two closing rows."""

    batches: list[dict[str, int]]

    @property
    def kept(self) -> list[int]:
        """Rows kept, without the closing micro-batch."""
        return [batch["kept"] for batch in self.batches[:-1]]

    @property
    def verdicts(self) -> list[Verdict]:
        half = len(self.kept) // 2
        growth = max(self.kept[half:]) / max(self.kept[:half])
        last = self.batches[-1]["kept"]
        text = f"the second half of {WINDOWS} windows keeps {growth:.2f} times the rows of the first"
        closed = f"after the closing rows {last} rows are kept, the closing ones among them"
        return [
            Verdict("state is flat", growth, GROWTH, text, at_most=True),
            Verdict("state empties", last, 2, closed, at_most=True),
        ]

    def to_json(self) -> dict[str, Any]:
        return {"batches": self.batches, "verdicts": [verdict.to_json() for verdict in self.verdicts]}


def measure(track: Track, quick: bool) -> BoundedOutcome:
    """Our equality join, over so many windows."""
    rows = QUICK_ROWS if quick else ROWS
    batches = WINDOWS * BOUND_SECONDS * 1_000_000 // BATCH_US
    stream = Stream("equality", rows, batches, usual_step(rows), BOUND_SECONDS)
    track.say(f"state over {WINDOWS} windows: {batches} micro-batches of {rows:,} rows ...")
    outcome = BoundedOutcome(track.ask("stream_bounded", stream)["batches"])
    track.forget(stream)
    return outcome
