"""SQL of ingestion: jobs, their queue and files, and what is to be read or analysed again."""
