"""Small blobs lie in bundles: few values are written, and no more is kept than twice what is needed."""

from __future__ import annotations

import random

from streamjoin.spark.stored.bundles import PREFIX, SMALL, Shelf, unbundled


def commit(shelf: Shelf, store: dict[str, bytes], blobs: dict[str, bytes]) -> int:
    """What a bucket does; how many values were written."""
    written = 0
    for name, value in shelf.new_values(blobs):
        assert name not in store, "a value never changes under its name"
        store[name] = value
        shelf.values[name] = 1, len(value)
        written += 1
    for name in shelf.unneeded():
        del store[name]
        del shelf.values[name]
    return written


def test_blobs_come_and_go_and_are_found_again() -> None:
    rng, shelf, store, blobs = random.Random(1), Shelf(), {}, {}
    for step in range(200):
        for name in rng.sample(sorted(blobs), len(blobs) // 3):
            del blobs[name]
        for number in range(rng.choice([0, 1, 5, 40])):
            blobs[f"{step}/{number}"] = rng.randbytes(rng.choice([0, 10, 300, SMALL + 1]))
        large = sum(len(blob) >= SMALL for name, blob in blobs.items() if name.startswith(f"{step}/"))
        assert commit(shelf, store, blobs) <= large + 1, "all small ones are one value"
        shelf = Shelf.of({"values": shelf.values, "blobs": shelf.blobs})
        found = {blob: content for name, value in store.items() for blob, content in unbundled(name, value)}
        assert {name: found[name] for name in shelf.blobs} == blobs
    needed = sum(len(blob) for blob in blobs.values())
    heads = 60 * sum(value.startswith(PREFIX) for value, _ in shelf.blobs.values()) * 2
    assert sum(map(len, store.values())) <= 2 * needed + heads + 100


def test_what_is_left_of_a_thin_bundle_moves_on() -> None:
    shelf, store = Shelf(), {}
    commit(shelf, store, {name: bytes(100) for name in "abcdef"})
    (first,) = store
    assert commit(shelf, store, {name: bytes(100) for name in "cdef"}) == 0, "half of it and more is needed"
    assert commit(shelf, store, {name: bytes(100) for name in "ef"}) == 1
    assert first not in store
    assert list(store) == [shelf.blobs["e"][0]]
    assert commit(shelf, store, {"f": bytes(100)}) == 1, "alone it has its own name"
    assert list(store) == ["f"]
    assert commit(shelf, store, {}) == 0
    assert not store
