"""Two streams in files whose rows are kept for many micro-batches: what `bench spill --only spark` reads.

Rows have about 110 bytes when they are kept, come in order, and have about one partner each once a window is full.

| name     | columns                          | match, besides the window             |
|----------|----------------------------------|---------------------------------------|
| band     | ts, v, id, price, note           | `-0.5 <= r.v - l.v <= 0.5`            |
| equality | ts, k, id, price, note           | `l.k = r.k`                           |
| overlap  | ts, lo, hi, id, price, note      | `l.lo < r.hi and r.lo < l.hi`         |

Needs numpy and pyarrow only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Kind = Literal["band", "equality", "overlap"]

SIDES: Final = ("left", "right")
FILES: Final = 2  # of a side in a micro-batch: one for each core
NOTE: Final = 40  # letters
SECOND: Final = 1_000_000
EPOCH: Final = 1_700_000_000
VALUES: Final[dict[Kind, dict[str, str]]] = {
    "band": {"v": "double"},
    "equality": {"k": "bigint"},
    "overlap": {"lo": "double", "hi": "double"},
}


@dataclass(frozen=True)
class Kept:
    """How much there is: rows of both sides in a micro-batch, which is a second; how many of these rows are kept for;
    and micro-batches in all.
    """

    kind: Kind
    rows: int
    window: int
    batches: int

    @property
    def schema(self) -> str:
        """The columns, in Spark's words."""
        values = "".join(f"{name} {kind}, " for name, kind in VALUES[self.kind].items())
        return f"ts timestamp, {values}id bigint, price double, note string"

    def table(self, side: int, number: int) -> pa.Table:
        """The rows of a file."""
        rng = np.random.default_rng([7, list(VALUES).index(self.kind), self.rows, self.window, side, number])
        count = self.rows // (len(SIDES) * FILES)
        spread = SECOND // FILES
        ts = EPOCH * SECOND + number * spread + np.arange(count) * spread // count
        letters = rng.integers(ord("a"), ord("z") + 1, count * NOTE, dtype=np.uint8)
        ends = pa.py_buffer(np.arange(0, (count + 1) * NOTE, NOTE, dtype=np.int32))
        note = pa.StringArray.from_buffers(count, ends, pa.py_buffer(letters))
        columns = {"ts": pa.array(ts, pa.timestamp("us", tz="UTC")), **self._values(rng, count)}
        ids = np.arange(count) + number * count
        return pa.table({**columns, "id": ids, "price": rng.random(count), "note": note})

    def _values(self, rng: np.random.Generator, count: int) -> dict[str, object]:
        meets = self.rows * self.window  # rows of the other side within the window of one: before and after it
        if self.kind == "equality":
            return {"k": rng.integers(0, meets, count)}
        value = rng.random(count) * meets
        return {"v": value} if self.kind == "band" else {"lo": value, "hi": value + rng.random(count)}

    def write(self, folder: Path) -> int:
        """Both sides as Parquet files, in folders of their own; bytes of the rows of one micro-batch."""
        nbytes = 0
        for side, name in enumerate(SIDES):
            (folder / name).mkdir(parents=True)
            for number in range(self.batches * FILES):
                table, path = self.table(side, number), folder / name / f"{number:05d}.parquet"
                pq.write_table(table, path, compression="none", use_dictionary=False)
                os.utime(path, (EPOCH + number, EPOCH + number))  # Spark takes files in order of their times
                nbytes += table.nbytes if number < FILES else 0
        return nbytes
