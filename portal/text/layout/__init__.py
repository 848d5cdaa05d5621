"""Sentences, tables and headings of a text, and the part of it to show."""
