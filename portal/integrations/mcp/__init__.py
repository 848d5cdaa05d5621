"""`portal mcp`: search and fetch for AI clients that speak the Model Context Protocol.

``documents`` asks the engine, ``tools`` puts it into the protocol's words, ``serving`` carries
them: over standard input and output, or over HTTP. The last two need the extra `mcp`.
"""
