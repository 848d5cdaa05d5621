"""Gunicorn's own log, redacted like the portal's: addresses without query strings and exceptions
without messages, in every format of the access log."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import Any

from gunicorn.glogging import Logger

from portal.errors import InvalidSetting
from portal.observability.logs import configure_logs
from portal.observability.redaction import REDACTED, escape_controls, is_private
from portal.settings import load_settings

# After the kind of error, gunicorn quotes what the client sent.
_INVALID_REQUEST = re.compile(r"(Invalid request from ip=\S+: [^:']*).*", re.DOTALL)
# Fields of an access log that hold queries or personal data.
_WITH_QUERY = {"q": "-", "f": "-", "{raw_uri}e": "-", "{query_string}e": "-", "{request_uri}e": "-"}
_WITH_QUERY |= {"{referer}i": "-", "{http_referer}e": "-", "{location}o": "-"}


class GunicornLog(Logger):  # type: ignore[misc]  # Gunicorn ships no types.
    """Writes through the portal's handler, or with its formatter into the operator's file."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        if not logging.getLogger().handlers:
            # Gunicorn sets up its log before anything else. The application reports wrong settings.
            with suppress(InvalidSetting):
                configure_logs(load_settings())
        ours = logging.getLogger().handlers
        if cfg.errorlog == "-" and ours:
            self.error_log.handlers = []
            self.error_log.propagate = True
        else:
            for handler in self.error_log.handlers if ours else ():
                handler.setFormatter(ours[0].formatter)

    def warning(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        super().warning(_INVALID_REQUEST.sub(r"\1", str(msg)), *args, **kwargs)

    def atoms(self, *arguments: Any) -> dict[str, Any]:
        """Return the fields of an access log."""
        fields: dict[str, Any] = super().atoms(*arguments)
        fields["r"] = f"{fields['m']} {fields['U']} {fields['H']}"
        fields |= {name: value for name, value in _WITH_QUERY.items() if name in fields}
        fields |= {name: REDACTED for name in fields if name.startswith("{") and is_private(name)}
        # The request has been decoded: %0d%0a in an address is a line break here.
        return {
            name: escape_controls(value) if isinstance(value, str) else value
            for name, value in fields.items()
        }
