"""Blobs in pages, as they lie in Spark's state: small values cross its interface twice as fast as large ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Final

PAGE_BYTES: Final = 1 << 18
KEY: Final = "name string, page int"
VALUE: Final = "pages int, blob binary"  # how many pages there are, and this one


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
    >>> bindery.add("run", 1, 2, b"b"), bindery.add("run", 0, 2, b"a")
    (None, b'ab')
    """

    def __init__(self) -> None:
        self.loose: dict[Hashable, dict[int, Any]] = defaultdict(dict)

    def add(self, blob: Hashable, number: int, pages: int, page: Any) -> bytes | None:
        """One more page; the whole blob when it was the last that was missing."""
        found = self.loose[blob]
        found[number] = page
        if len(found) < pages:
            return None
        del self.loose[blob]
        return bound(found[number] for number in range(pages))


def bound(pages: Iterable[Any]) -> bytes:
    """A blob from its pages, in their order."""
    return b"".join(pages)
