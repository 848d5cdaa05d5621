"""Collections of programs."""
