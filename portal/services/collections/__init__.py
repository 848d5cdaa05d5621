"""Collections of vectors that programs store and search."""
