"""Who runs a physical plan on Spark: over batches, over streams, and at the end of a query."""
