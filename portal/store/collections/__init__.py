"""SQL of collections of programs."""
