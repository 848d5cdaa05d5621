"""Users: accounts, groups, second factors, sessions and tokens."""
