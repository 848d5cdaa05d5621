"""Import collections of a Chroma directory (`portal import-chroma`).

The directory is read from a copy (`snapshot`), page by page (`reading`); records are converted to
the store's types (`records`) and written in batches (`moving`).
`portal.processes.cli.chroma_import` reports.
"""
