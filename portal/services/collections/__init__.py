"""Collections that programs keep."""
