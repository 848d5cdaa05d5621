"""Responses that are no page and no JSON document: files, streams, compressed bodies."""
