"""Answers without a language model: the statements of documents that answer a question."""
