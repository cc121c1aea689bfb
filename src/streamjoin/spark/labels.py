"""Bucket labels: one int per bucket that Spark's hash partitioner sends to a partition of its own.

Spark places a row of `repartition(n, label)` in partition `pmod(murmur3(label, 42), n)`. The ints 0 and 1 both fall
into partition 1 of 2, so plain numbers would leave cores idle. Labels are found here, without asking Spark.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF


def spark_hash(value: int) -> int:
    """Spark's `hash(int)`: Murmur3 with seed 42, as a signed 32-bit integer.

    >>> spark_hash(0), spark_hash(1)
    (933211791, -559580957)
    """
    k = value & _MASK
    k = (k * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    k = (k * 0x1B873593) & _MASK
    h = 42 ^ k
    h = ((h << 13) | (h >> 19)) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4  # the number of bytes hashed
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & _MASK
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 0x80000000 else h


def bucket_labels(buckets: int) -> tuple[int, ...]:
    """A label for each bucket; label b falls into partition b of `buckets`.

    >>> [spark_hash(label) % 3 for label in bucket_labels(3)]
    [0, 1, 2]
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < buckets:
        found.setdefault(spark_hash(number) % buckets, number)
        number += 1
    return tuple(found[bucket] for bucket in range(buckets))
