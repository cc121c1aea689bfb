"""Bucket labels: our hash is Spark's, so every bucket has a partition of its own."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamjoin.spark.labels import bucket_labels, spark_hash


def test_spark_hash_is_the_hash_of_spark(spark: SparkSession) -> None:
    near_zero = list(range(-400, 400))
    far = [2**31 - 1, -(2**31), 123_456_789, *range(10**9, 10**9 + 200)]
    rows = spark.createDataFrame([(number,) for number in near_zero + far], "number int").select(
        "number", F.hash("number")
    )
    assert [(number, spark_hash(number)) for number, _ in rows.collect()] == [tuple(row) for row in rows.collect()]


@pytest.mark.parametrize("buckets", [1, 2, 3, 5, 8, 64])
def test_every_bucket_has_a_partition_of_its_own(spark: SparkSession, buckets: int) -> None:
    labels = bucket_labels(buckets)
    frame = spark.createDataFrame(list(enumerate(labels)), "bucket int, label int")
    placed = frame.repartition(buckets, "label").select("bucket", F.spark_partition_id()).collect()
    assert sorted(map(tuple, placed)) == [(bucket, bucket) for bucket in range(buckets)]
