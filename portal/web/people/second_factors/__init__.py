"""Second factors of one's own account, and the second step of signing in."""
