"""Users: accounts, sessions and tokens."""
