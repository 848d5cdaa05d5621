"""SQL of ingestion: jobs, their queue and files, and texts to read or analyse again."""
