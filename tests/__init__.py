"""The tests, and what they share: `from tests.oracle import ...`."""
