"""`portal mcp`: search and fetch for AI clients that speak the Model Context Protocol.

``documents`` searches and fetches, ``tools`` offers both in the terms of the protocol, ``serving``
serves them over standard input and output or over HTTP. The last two need the extra `mcp`.
"""
