"""Spelling: of words (`spelling`), of whole queries (`respelling`), and what to suggest after a
search (`suggestions`)."""
