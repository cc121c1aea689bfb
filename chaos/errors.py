"""What can go wrong with chaos itself, and with a query under it."""


class ChaosError(Exception):
    """A run that cannot go on, or a query that failed without being killed."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{message}. Hint: {hint}." if hint else message)
