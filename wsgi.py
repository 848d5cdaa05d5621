"""The entry for gunicorn: ``gunicorn wsgi:app``."""

from portal import create_app
from portal.container import build_services
from portal.observability import logs, metric_files
from portal.settings import load_settings

_settings = load_settings()
logs.log_uncaught()
metric_files.join(_settings.data_dir)
_services = build_services(_settings, statement_timeout_s=_settings.database_statement_timeout_s)
app = create_app(_services)
