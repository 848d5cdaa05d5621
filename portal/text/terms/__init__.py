"""Search terms of texts and of queries, their spelling and their positions."""
