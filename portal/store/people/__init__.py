"""SQL of users, groups, second factors, sessions and tokens."""
