"""What crosses into Spark's state, and how it is read again."""
