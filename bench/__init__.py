"""`./run bench`: latency, recall and throughput of the search engine, beside its peers."""

SECRET_KEY = "signs only the tokens of a benchmark, and is not stored"
