"""Responses other than pages and JSON documents: files, streams, compressed bodies."""
