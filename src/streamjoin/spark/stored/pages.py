"""Blobs in pages, as they lie in Spark's state: small values cross its interface twice as fast as large ones.

Law: whatever is written later lies behind all that was written before with names as long. RocksDB keeps values in the
order of their keys, in files; what lies together expires together, so a file is as good as gone when its time has come.
In the order of names, which are random, each new file is mixed with all others: the database wrote everything several
times over.

    key     name, place: Spark writes the length of the name, the place with its lowest byte first, and the name
    place   the number of the page among all that were written since pages have places, its bytes turned round
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

PAGE_BYTES: Final = 1 << 18
KEY: Final = "name string, page int"  # the page's place
VALUE: Final = "pages int, blob binary"  # how many pages there are, and this one
_PLACES: Final = 1 << 32


def place_of(number: int) -> int:
    """Where the page lies that was written as number so and so. After four billions they begin anew.

    >>> place_of(0), place_of(1), place_of(255), place_of(256), place_of(1 << 32)
    (0, 16777216, -16777216, 65536, 0)
    """
    return int.from_bytes((number % _PLACES).to_bytes(4, "big"), "little", signed=True)


def first_of(written: int, count: int) -> int:
    """As number what the first of so many pages is written that belong together: numbers do not begin anew among them.

    >>> first_of(7, 3), first_of((1 << 32) - 2, 3) == 1 << 32
    (7, True)
    """
    left = _PLACES - written % _PLACES
    return written if count <= left else written + left


@dataclass(frozen=True)
class Stored:
    """A value in the store: how many pages and bytes it has, and as number what its first page was written. Nobody
    knows that of values from before pages had places: theirs count from 0 in each.
    """

    pages: int
    size: int
    first: int | None = None

    @property
    def places(self) -> Sequence[int]:
        """Where its pages are."""
        if self.first is None:
            return range(self.pages)
        return [place_of(number) for number in range(self.first, self.first + self.pages)]

    def to_json(self) -> list[int]:
        """As manifests say it."""
        return [self.pages, self.size, *([] if self.first is None else [self.first])]


def pages_of(blob: bytes) -> Iterator[bytes]:
    """What is stored of a blob, page by page; at least one. Never all at once: that would be the blob once more.

    >>> [len(page) for page in pages_of(bytes(PAGE_BYTES + 5))]
    [262144, 5]
    """
    return (blob[first : first + PAGE_BYTES] for first in range(0, max(1, len(blob)), PAGE_BYTES))


def page_count(blob: bytes) -> int:
    """How many pages a blob has.

    >>> page_count(b""), page_count(bytes(PAGE_BYTES)), page_count(bytes(PAGE_BYTES + 1))
    (1, 1, 2)
    """
    return max(1, -(-len(blob) // PAGE_BYTES))


class Bindery:
    """Puts blobs together from pages that come in any order.

    >>> bindery = Bindery()
    >>> bindery.add("run", place_of(256), 2, b"b"), bindery.add("run", place_of(255), 2, b"a")
    (None, b'ab')
    >>> bindery.add("old", 1, 2, b"b"), bindery.add("old", 0, 2, b"a")
    (None, b'ab')
    """

    def __init__(self) -> None:
        self.loose: dict[Hashable, dict[int, Any]] = defaultdict(dict)

    def add(self, blob: Hashable, place: int, pages: int, page: Any) -> bytes | None:
        """One more page; the whole blob when it was the last that was missing."""
        found = self.loose[blob]
        found[place] = page
        if len(found) < pages:
            return None
        del self.loose[blob]
        return in_order(found)


def in_order(pages: Mapping[int, Any]) -> bytes:
    """A blob from all its pages, by their places."""
    return bound(pages[place] for place in places_in_order(pages))


def places_in_order(places: Collection[int]) -> list[int]:
    """The places of a blob's pages in their order. Two of one blob are never both among the smallest numbers, unless
    they count from 0, as they did before pages had places.

    >>> places_in_order({2, 0, 1}), places_in_order({place_of(number) for number in (256, 254, 255)})
    ([0, 1, 2], [-33554432, -16777216, 65536])
    """
    plain = sorted(places)
    return plain if plain == list(range(len(plain))) else sorted(plain, key=_number_at)


def _number_at(place: int) -> int:
    return int.from_bytes(place.to_bytes(4, "little", signed=True), "big")


def bound(pages: Iterable[Any]) -> bytes:
    """A blob from its pages, in their order."""
    return b"".join(pages)
