"""Serving: a supervisor that starts PostgreSQL, the web process and the workers (`supervisor`,
`children`), how the web process listens (`web_server`), and gunicorn's worker (`web_worker`), which
slow clients do not hold up (`client_connections`)."""
