"""Placing by tokens: a row goes to the buckets of its prefix tokens, where everyone similar to it has one as well.

    row of 10 tokens, jaccard 0.8:  prefix of 3, so at most 3 buckets, whatever their number

Tokens are taken in the order of their hashes, which both inputs know without being told; see `kernels.sets` for what a
prefix is. A pair may meet in several buckets, and belongs to that of the smallest token that both prefixes have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamjoin.algebra import Similar
from streamjoin.algebra.interval import Mask
from streamjoin.kernels import smallest_shared_token
from streamjoin.runtime.placing import Partitioning, Placement, content_hash, modulo
from streamjoin.state import Batch, PairTest
from streamjoin.state.batch import Indices
from streamjoin.state.contents import token_lists


@dataclass(frozen=True)
class TokenPartitioning(Partitioning):
    """Both inputs in the buckets of their prefix tokens; a pair belongs to that of the smallest one it shares."""

    predicate: Similar

    @property
    def replicates(self) -> tuple[bool, bool]:
        return (True, True)

    def place(self, number: int, batch: Batch, hashes: Indices | None = None) -> Placement:
        offsets, tokens, prefix = _prefixes(batch, self.predicate)
        if batch.matchable is not None:
            prefix = np.where(batch.matchable, prefix, 0)
        rows = np.repeat(np.arange(len(batch)), prefix)
        # The tokens of all prefixes: the first of each row, and so many that follow.
        step = np.arange(len(rows)) - np.repeat(np.cumsum(prefix) - prefix, prefix)
        buckets = modulo(tokens[offsets[:-1][rows] + step], self.buckets)
        # Who has no prefix meets nobody, and only has to be somewhere.
        alone = np.flatnonzero(prefix == 0)
        rows = np.concatenate([rows, alone])
        buckets = np.concatenate([buckets, modulo(content_hash(batch)[alone], self.buckets)])
        places = np.unique(rows * self.buckets + buckets)
        return Placement(places // self.buckets, places % self.buckets)

    def owner_test(self, bucket: int) -> PairTest | None:
        return SmallestSharedToken(bucket, self.buckets, self.predicate)

    def describe(self) -> str:
        return (
            f"prefix tokens over {self.buckets} buckets: both inputs in the buckets of their prefix tokens, a pair is "
            "kept in that of the smallest one it shares"
        )


@dataclass(frozen=True)
class SmallestSharedToken:
    """Keeps a pair in the bucket of the smallest token that both prefixes have."""

    bucket: int
    buckets: int
    predicate: Similar

    def holds(self, a: Batch, i: Indices, b: Batch, j: Indices) -> Mask:
        shared = smallest_shared_token(_prefixes(a, self.predicate), i, _prefixes(b, self.predicate), j)
        return np.asarray(modulo(shared, self.buckets) == self.bucket, np.bool_)


def _prefixes(batch: Batch, predicate: Similar) -> tuple[Indices, Indices, Indices]:
    found = token_lists(batch, 0, predicate)
    return found.lists[0], found.lists[1], found.prefix


def is_selective(predicate: Similar) -> bool:
    """Whether prefixes are short enough for fewer copies than a matrix makes, as far as the threshold alone tells.

    >>> is_selective(Similar("t", "t", "jaccard", 0.8)), is_selective(Similar("t", "t", "overlap", 2))
    (True, False)
    """
    if predicate.measure == "edit":
        return predicate.threshold <= 1
    least = {"jaccard": 0.7, "cosine": 0.8}  # of ten tokens four at most are in a prefix
    return predicate.threshold >= least.get(predicate.measure, float("inf"))
