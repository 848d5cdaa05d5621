"""`./run bench`: latency, recall and throughput of the search engine, beside its peers."""
