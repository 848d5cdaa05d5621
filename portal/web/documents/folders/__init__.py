"""Pages of folders."""
