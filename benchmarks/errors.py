"""What can go wrong with a measurement. Not streamjoin's own errors: peers run where there is no streamjoin."""


class BenchmarkError(Exception):
    """A benchmark that cannot go on: nothing is measured rather than something wrong."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{message}. Hint: {hint}." if hint else message)


class ContenderError(BenchmarkError):
    """A contender that failed or died: its own words."""


class UnequalResultsError(BenchmarkError):
    """Contenders that delivered different results: there is no ratio of their times."""
