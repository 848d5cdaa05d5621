"""SQL of health checks."""
