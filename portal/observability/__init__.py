"""Logs, metrics and traces, and what never goes into them."""
