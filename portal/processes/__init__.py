"""Processes: the command line, the supervisor, the worker and what they run."""
