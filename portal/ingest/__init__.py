"""From a file to chunks: its type, its text, and the pieces that search finds.

`media_types.sniff` → `extraction.extract` → `chunking.split`. They raise PortalErrors only.
"""
