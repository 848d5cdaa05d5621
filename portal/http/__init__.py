"""Shared by pages and JSON: the request's context, files, streams, messages."""
