"""SQL of collections that programs keep."""
