"""What is left of Spark's errors: the one line that says what happened."""

from __future__ import annotations

import pytest

from streamjoin import CallError, StreamjoinError
from streamjoin.cli.failure import bad_row, from_spark, readable_failures, reason

TRACE = "\n\n\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:500)\n\tat java.lang.Thread.run"
STREAM = (
    "[STREAM_FAILED] Query [id = 1b-2, runId = 3c] terminated with exception: Job aborted due to stage failure: "
    "Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage 1.0 (TID 1) (host): "
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "processor.py", line 70, in handleInputRows\n'
    "    state, known = self._load(int(bucket))\n"
)


class SparkError(Exception):
    """Looks as if Spark had raised it."""


SparkError.__module__ = "pyspark.errors.exceptions.captured"


def test_our_own_message_is_found_with_its_hint() -> None:
    text = (
        STREAM + "streamjoin.errors.SnapshotError: window was 4, and is 5. Hint: start with a new checkpoint." + TRACE
    )
    assert reason(text) == "window was 4, and is 5. Hint: start with a new checkpoint."


def test_our_message_ends_before_spark_s_report_of_the_query() -> None:
    report = "\n SQLSTATE: 38000 SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = 1]\n\nLogical Plan: ..."
    assert reason(STREAM + "streamjoin.errors.LateRowError: too late. Hint: wait." + report) == "too late. Hint: wait."


def test_a_message_may_have_several_lines() -> None:
    text = STREAM + "streamjoin.errors.EvaluationError: no value for\n  l.v / r.v\n  ^." + TRACE
    assert reason(text) == "no value for\n  l.v / r.v\n  ^."


def test_other_errors_in_python_give_the_last_line_of_their_traceback() -> None:
    assert reason(STREAM + "ZeroDivisionError: division by zero" + TRACE) == "ZeroDivisionError: division by zero"


def test_of_two_errors_the_one_that_was_raised_from_the_other_counts() -> None:
    chain = "ValueError: low\n\nThe above exception was the direct cause of the following exception:\n\n"
    text = STREAM + chain + "Traceback (most recent call last):\n  File 'a.py'\nKeyError: 'high'\n" + TRACE
    assert reason(text) == "KeyError: 'high'"


def test_spark_s_own_errors_lose_their_traces_and_plans() -> None:
    assert reason("[PATH_NOT_FOUND] no path. SQLSTATE: 42K03" + TRACE) == "[PATH_NOT_FOUND] no path."
    stream = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: disk full SQLSTATE: XXKST"
    assert reason(stream + "\n=== Streaming Query ===\nIdentifier: 1\nLogical Plan: ...") == "disk full"
    assert reason("An error occurred while calling o1.load.\n: java.io.IOException" + TRACE).startswith("An error")


def test_only_spark_s_errors_are_turned_into_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert from_spark(SparkError())
    with pytest.raises(StreamjoinError, match=r"disk full\. Hint: --verbose shows all of it\."), readable_failures():
        raise SparkError("disk full" + TRACE)
    with pytest.raises(StreamjoinError, match=r"^disk full\.$"), readable_failures(verbose=True):
        raise SparkError("disk full" + TRACE)
    assert "PythonRunner.scala" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError), readable_failures():
        raise ZeroDivisionError
    with pytest.raises(CallError, match=r"^wrong\.$"), readable_failures():
        raise CallError("wrong")


def test_a_file_with_other_names_in_its_first_line() -> None:
    error = bad_row([
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///in/a%20b.csv.  SQLSTATE: KD001",
        "CSV header does not conform to the schema.\n Header: v, k\n Schema: k, v\nExpected: k but found: v",
    ])  # fmt: skip
    assert error is not None
    assert (
        error.message == "/in/a b.csv has other columns than its stream: the first line says v, k, the stream has k, v"
    )


def test_of_a_bad_row_the_last_cause_is_told_without_spark_s_advice() -> None:
    parsing = "[X.Y] Malformed records are detected in record parsing: [a,null].\nParse Mode: FAILFAST. To process"
    cast = (
        '[CAST_INVALID_INPUT] The value \'now\' of the type "STRING" cannot be cast to "TIMESTAMP" because it is '
        "malformed. Correct the value as per the syntax. Use `try_cast` to tolerate malformed input. SQLSTATE: 22018"
    )
    error = bad_row(["while reading file file:/in/1.csv. SQLSTATE", parsing, cast])
    assert error is not None
    assert error.message == (
        "/in/1.csv has a row that does not fit its columns, [a,null]: The value 'now' of the type \"STRING\" cannot be "
        'cast to "TIMESTAMP" because it is malformed.'
    )
    assert bad_row(["disk full"]) is None
