"""Pages of administration."""
