"""Search: from a query to ranked, explained results."""
