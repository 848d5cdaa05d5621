"""Logs, metrics and traces, and their redaction."""
