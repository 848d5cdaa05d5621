"""The entry for gunicorn: ``gunicorn wsgi:app``."""

from structlog import get_logger

from portal import create_app
from portal.container import build_services
from portal.observability import logs, metric_files
from portal.settings import load_settings
from portal.settings.unused import find_unused

_log = get_logger("portal")
_settings = load_settings()
logs.log_uncaught()
metric_files.join(_settings.data_dir)
_services = build_services(_settings, statement_timeout_s=_settings.database_statement_timeout_s)
for _unused in find_unused(_settings):
    _log.warning("setting_without_effect", setting=_unused.name, reason=_unused.reason)
app = create_app(_services)
