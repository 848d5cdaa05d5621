"""Retrieval quality: `./run eval` measures the portal's own search on sets of questions.

A set is two files, ``NAME.docs.jsonl`` with ``{id, title, text}`` and ``NAME.queries.jsonl`` with
``{id, text, qrels: {document id: 1}}`` per line. docs/retrieval-quality.md has the results.
"""

import portal  # noqa: F401 - first of all, since it limits the threads of numpy
