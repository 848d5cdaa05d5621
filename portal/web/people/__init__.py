"""Pages of accounts and sign-in."""
