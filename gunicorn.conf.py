"""What `gunicorn wsgi:app` runs with, where its command line says nothing else."""

from contextlib import suppress
from typing import Any

from portal.errors import InvalidSetting
from portal.settings import load_settings

worker_class = "portal.processes.serving.web_worker.WebWorker"
# Connections that a process holds, nearly all of them idle.
worker_connections = 2000
# The worker keeps the order of what it sends, which the system's own copying would pass by.
sendfile = False
graceful_timeout = 8
keepalive = 15
# The longest that gunicorn offers: in an address a Chinese character takes nine bytes.
limit_request_line = 8190
# By default gunicorn trusts X-Forwarded-Proto, SCRIPT_NAME and PATH_INFO from this machine and from
# every client of a Unix socket. Only PORTAL_TRUSTED_PROXIES decides what is trusted.
forwarded_allow_ips = ""
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
logger_class = "portal.observability.gunicorn_log.GunicornLog"

# The application reports a wrong setting.
with suppress(InvalidSetting):
    threads = load_settings().web_process_threads


def on_starting(_server: Any) -> None:
    """Join the shared metrics: this process outlives each worker, and so keeps their counts."""
    from portal.observability import metric_files

    with suppress(InvalidSetting):
        metric_files.join(load_settings().data_dir)


def post_worker_init(worker: Any) -> None:
    """Load the model and watch the servers in each worker: neither survives a fork, which comes
    later with --preload."""
    from portal.services.models.preloading import load_ahead

    services = worker.wsgi.extensions["portal"]
    services.database.watch()
    load_ahead(services)
