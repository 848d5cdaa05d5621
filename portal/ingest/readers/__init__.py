"""Parsers of untrusted files: each reader runs in a process of its own, with limits.

A reader is a file with `read(file, **options)`, which yields records that JSON can hold, or one
`{"error": …}` with a key of `portal.ingest.reader_process.ERRORS`. An optional `load()` is called
before, because nothing else can be opened once reading begins (`confinement`). A reader imports
nothing of the portal, which keeps its start short; `limited` runs it, and `reader_process` starts
that.
"""
