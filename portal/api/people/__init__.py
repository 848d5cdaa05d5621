"""The JSON API for accounts, groups, sessions and tokens."""
