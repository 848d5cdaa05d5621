"""What `gunicorn wsgi:app` runs with, where nothing else is said on its command line."""

worker_class = "gthread"
threads = 16
graceful_timeout = 8
keepalive = 15
# The longest that gunicorn offers: in an address a Chinese character takes nine bytes.
limit_request_line = 8190
