"""Bodies of requests and responses about documents and jobs."""
