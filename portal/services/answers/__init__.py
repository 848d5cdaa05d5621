"""Answers: questions in conversations, quotations and citations."""
