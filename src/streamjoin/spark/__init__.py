"""The only place (with `api`) that knows Spark: reading frames, packing rows into blobs, running plans, the session."""
