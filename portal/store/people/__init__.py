"""SQL of users and tokens."""
