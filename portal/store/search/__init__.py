"""SQL of searches."""
