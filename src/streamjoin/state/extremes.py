"""The least and the greatest value of one column per group, under additions and removals.

Numbers, dates and times lie in the heaps themselves, as integers in their order. Text, binary and long decimals lie in
one store of byte strings, and the heaps have their numbers. Every sweep appends its distinct values there. When the
store has twice as many as the heaps refer to, it is made anew without the others: it stays in proportion to what lives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.algebra.interval import Mask
from streamjoin.kernels import Heaps, Reads, Steps, Text, fold_heaps, with_room
from streamjoin.state.aggregate_types import is_bytes, is_long_decimal
from streamjoin.state.batch import Indices
from streamjoin.state.column_values import decimals, halves, keys_of, present, values_of

_SMALL_STORE: Final = 1024  # not worth to be made anew
_SIGN: Final = np.int64(-(2**63))


@dataclass
class Texts:
    """A store of byte strings, by number: string i is `data[offsets[i]:offsets[i + 1]]`.

    >>> texts = Texts()
    >>> texts.append(pa.array([b"b", b"", b"a"], pa.large_binary())), texts.append(pa.array([b"c"], pa.large_binary()))
    (0, 3)
    >>> texts.take(np.array([3, 0]), np.array([True, True])).to_pylist()
    [b'c', b'b']
    """

    count: int = 0
    offsets: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    data: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return self.offsets.nbytes + self.data.nbytes

    def append(self, values: pa.Array) -> int:
        """Keep these strings (large binary, no NULL); returns the number of the first."""
        first, used = self.count, int(self.offsets[self.count])
        offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
        length = int(offsets[-1] - offsets[0])
        self.offsets = with_room(self.offsets, first + len(values) + 1)
        self.data = with_room(self.data, used + length)
        self.offsets[first : first + len(values) + 1] = offsets - offsets[0] + used
        if length:
            data = np.frombuffer(values.buffers()[2], np.uint8)
            self.data[used : used + length] = data[offsets[0] : offsets[-1]]
        self.count += len(values)
        return first

    def take(self, numbers: Indices, known: Mask) -> pa.Array:
        """The strings of these numbers, NULL where not `known`."""
        buffers = [None, pa.py_buffer(self.offsets[: self.count + 1]), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), self.count, buffers).take(pa.array(numbers, mask=~known))

    def only_of(self, heaps: list[Heaps]) -> Texts:
        """A store of the strings to which these heaps refer, which are told the new numbers."""
        places = [heap.places() for heap in heaps]
        numbers = [heap.pool[where] for heap, where in zip(heaps, places, strict=True)]
        used = np.unique(np.concatenate(numbers))
        stays = Texts()
        stays.append(self.take(used, np.ones(len(used), np.bool_)))
        for heap, where, old in zip(heaps, places, numbers, strict=True):
            heap.pool[where] = np.searchsorted(used, old)
        return stays


class Extremes:
    """What is kept of one column, for `min`, `max` or both."""

    def __init__(self, kind: pa.DataType, functions: tuple[str, ...]) -> None:
        self.kind = kind
        self.heaps = {function: Heaps() for function in functions}
        self.texts = Texts() if is_bytes(kind) else None

    def fold(
        self, steps: Steps, column: pa.ChunkedArray, order: Indices, known: Mask, values: Indices
    ) -> dict[str, pa.Array]:
        """The extremes at each read; `known`: which changes have a value, `values`: how many there are at a read."""
        entries = self._entries(column)[order][known]
        steps, found = steps.only(known), {}
        for function, heaps in self.heaps.items():
            if self.texts is None:
                keys = fold_heaps(steps, entries if function == "min" else ~entries, heaps, None)
                found[function] = values_of(keys if function == "min" else ~keys, values > 0, self.kind)
            else:
                numbers = fold_heaps(steps, entries, heaps, self._text(function))
                found[function] = _from_bytes(self.texts.take(numbers, values > 0), self.kind)
        self._tidy()
        return found

    def _entries(self, column: pa.ChunkedArray) -> Indices:
        if self.texts is None:
            return keys_of(column)
        strings = _to_bytes(column).combine_chunks().dictionary_encode()
        first = self.texts.append(strings.dictionary) if len(strings.dictionary) else 0
        return np.asarray(strings.indices.fill_null(0)).astype(np.int64) + first

    def _text(self, function: str) -> Text | None:
        if self.texts is None:
            return None
        return (self.texts.offsets, self.texts.data, 1 if function == "min" else -1)

    def _tidy(self) -> None:
        if self.texts is not None:
            heaps = list(self.heaps.values())
            if self.texts.count > _SMALL_STORE + 2 * sum(heap.entries for heap in heaps):
                self.texts = self.texts.only_of(heaps)

    def grow(self, groups: int) -> None:
        """Have room for so many groups."""
        for heaps in self.heaps.values():
            heaps.grow(groups)

    def renumber(self, old_to_new: Indices) -> None:
        """Move the groups to new codes."""
        for heaps in self.heaps.values():
            heaps.renumber(old_to_new)

    @property
    def nbytes(self) -> int:
        """Bytes kept."""
        return sum(heaps.nbytes for heaps in self.heaps.values()) + (self.texts.nbytes if self.texts else 0)

    def to_table(self) -> pa.Table:
        """Group and value of everything alive, to be stored."""
        function, heaps = next(iter(self.heaps.items()))
        group, entry = heaps.living(self._text(function))
        known = np.ones(len(entry), np.bool_)
        if self.texts is None:
            values = values_of(entry if function == "min" else ~entry, known, self.kind)
        else:
            values = _from_bytes(self.texts.take(entry, known), self.kind)
        return pa.table({"group": pa.array(group), "value": values})

    def from_table(self, table: pa.Table) -> None:
        """The inverse of `to_table`."""
        group, none = table["group"].to_numpy(), np.zeros(0, np.int64)
        steps = Steps(group, np.ones(len(group), np.int8), Reads(none, none))
        self.fold(steps, table["value"], np.arange(len(group)), present(table["value"]), none)


def _to_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Byte strings in the order of the values."""
    if not is_long_decimal(column.type):
        return column.cast(pa.large_binary())
    low, high = halves(column)
    words = np.stack([high ^ _SIGN, low], axis=1).astype(">i8")  # big endian, negative numbers first
    offsets = pa.py_buffer(16 * np.arange(len(low) + 1))
    return pa.chunked_array([pa.Array.from_buffers(pa.large_binary(), len(low), [None, offsets, pa.py_buffer(words)])])


def _from_bytes(strings: pa.Array, kind: pa.DataType) -> pa.Array:
    if not is_long_decimal(kind):
        return strings.cast(kind)
    known = strings.is_valid().to_numpy(zero_copy_only=False)
    words = np.zeros((len(strings), 2), np.int64)
    present_words = strings.drop_null().cast(pa.binary(16)).buffers()[1] if known.any() else b""
    words[known] = np.frombuffer(present_words, ">i8").reshape(-1, 2)
    return decimals(words[:, 1], words[:, 0] ^ _SIGN, known, pa.decimal128(kind.precision, kind.scale)).cast(kind)
