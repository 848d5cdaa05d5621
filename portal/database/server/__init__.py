"""The server process that the portal starts: its files, its user and its programs."""
