"""Serving: a supervisor that starts PostgreSQL, the web process and the workers (`supervisor`,
`children`), how the web process listens (`web_server`), and a worker for gunicorn (`web_worker`)
that slow clients cannot block (`client_connections`)."""
