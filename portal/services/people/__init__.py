"""People: accounts, sessions and tokens."""
