"""What `gunicorn wsgi:app` runs with, where nothing else is said on its command line."""

from contextlib import suppress
from typing import Any

from portal.errors import InvalidSetting
from portal.observability import logs, metric_files
from portal.settings import load_settings

worker_class = "gthread"
graceful_timeout = 8
keepalive = 15
# The longest that gunicorn offers: in an address a Chinese character takes nine bytes.
limit_request_line = 8190
logger_class = "portal.observability.gunicorn_log.GunicornLog"

# Whoever starts the workers outlives each of them, and with it what they have counted. A setting
# that is wrong is told of by the application.
with suppress(InvalidSetting):
    _settings = load_settings()
    threads = _settings.web_process_threads
    logs.configure_logs(_settings)
    metric_files.join(_settings.data_dir)


def post_worker_init(worker: Any) -> None:
    """In each worker, with --preload as well: a model that its parent had loaded would not live."""
    from portal.services.models.preloading import load_ahead

    load_ahead(worker.wsgi.extensions["portal"])
