"""The entry for gunicorn: ``gunicorn wsgi:app``."""

from portal import create_app

app = create_app()
