"""Store chunks in Chroma. Needs the extra `chroma`.

``collection`` opens a collection and finds out what it supports, ``bm25`` fills Chroma's own sparse
index, ``words`` and ``lexical_index`` rank words where there is none, ``chunks`` is the backend.
"""
