"""Small blobs lie in bundles: few values are written, and no more is kept than twice what is needed."""

from __future__ import annotations

import json
import random

from streamjoin.spark.stored.bundles import PREFIX, SMALL, Shelf, unbundled
from streamjoin.spark.stored.pages import PAGE_BYTES, places_in_order


def commit(shelf: Shelf, store: dict[str, bytes], blobs: dict[str, bytes]) -> int:
    """What a bucket does; how many values were written."""
    written = 0
    for name, value in shelf.new_values(blobs):
        assert name not in store, "a value never changes under its name"
        places, pages = zip(*shelf.put(name, value), strict=True)
        store[name] = b"".join(page for _, page in pages)
        assert list(places) == list(shelf.values[name].places)
        assert store[name] == value
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
        shelf = Shelf.of(json.loads(json.dumps(shelf.to_json())))
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


def stored_key(name: str, place: int) -> bytes:
    """As Spark writes it: where the text lies and how long it is, the number, and the text; lowest bytes first."""
    return len(name).to_bytes(4, "little") + place.to_bytes(4, "little", signed=True) + name.encode()


def test_whatever_is_written_later_lies_behind_all_before_with_names_as_long() -> None:
    shelf, keys = Shelf(written=250), []
    for number in range(40):
        name = f"0:area0/run/{hash(number * 7919) % 10**8:032x}"
        keys += [stored_key(name, place) for place, _ in shelf.put(name, bytes(PAGE_BYTES * 3))]
    assert keys == sorted(keys)
    assert len(set(keys)) == 120


def test_numbers_of_pages_that_belong_together_do_not_begin_anew_among_them() -> None:
    shelf = Shelf(written=(1 << 32) - 2)
    places = [place for place, _ in shelf.put("run", bytes(PAGE_BYTES * 3))]
    assert places_in_order(set(places)) == places
    assert shelf.written % (1 << 32) == 3


def test_values_from_before_pages_had_places_are_read_and_removed() -> None:
    shelf = Shelf.of({"values": {"run": [3, PAGE_BYTES * 3]}, "blobs": {"run": ["run", PAGE_BYTES * 3]}})
    assert list(shelf.values["run"].places) == [0, 1, 2]
    assert shelf.to_json() == {
        "values": {"run": [3, PAGE_BYTES * 3]}, "blobs": {"run": ("run", PAGE_BYTES * 3)}, "written": 0,
    }  # fmt: skip
