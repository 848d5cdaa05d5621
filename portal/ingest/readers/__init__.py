"""What takes strangers' files apart: each reader runs in a process of its own, with limits.

A reader is a file with `read(file, **options)`, which yields records that JSON can hold, or one
`{"error": …}` with a key of `portal.ingest.reader_process.ERRORS`. `load()`, where there is one, is
called before: once the file is read nothing else can be opened (`confinement`). A reader imports
nothing of the portal, which keeps its start short; `limited` runs it, `reader_process` starts that.
"""
