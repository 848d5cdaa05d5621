"""Parsers of untrusted files: each reader runs in its own process, with limits.

A reader is a file with `read(file, **options)`, which yields records that JSON can represent, or
one `{"error": …}`: `encrypted`, `no_pages`, `pages`, `characters`, `broken`, `memory` (perhaps with
`limit_mb`), or `too_many` with `what` and `limit`. An optional `load()` is called first, because
nothing else can be opened once reading begins (`confinement`). A reader imports only modules of
this folder, which keeps its start short. `reader_process` starts `limited`, which runs it.
"""
