"""`./run bench`: latency, recall and throughput of the search engine, compared with its peers."""

import portal  # noqa: F401 - first of all, since it limits the threads of numpy

SECRET_KEY = "signs only the tokens of a benchmark, and is not stored"
