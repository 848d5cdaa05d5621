"""The proxy's configuration fits the portal's own limits."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from portal.settings import Settings

PROJECT = Path(__file__).parents[3]
NGINX = (PROJECT / "deploy" / "nginx.conf").read_text()


def directive(name: str) -> str:
    found = re.search(rf"^\s*{name} ([^;]+);", NGINX, re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_nginx_accepts_uploads_of_the_portals_size_and_buffers_them() -> None:
    assert directive("client_max_body_size") == f"{Settings().max_upload_mb * 10 + 1}m"
    assert directive("proxy_request_buffering") == "on"
    assert directive("proxy_buffering") == "on"
    assert "$request_uri" not in directive("log_format portal")
    assert re.search(r"location /metrics \{\s*deny all;", NGINX)


def test_compose_exposes_only_the_proxy() -> None:
    compose = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    services = compose["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert "./deploy/nginx.conf:/etc/nginx/nginx.conf:ro" in services["proxy"]["volumes"]
    assert services["web"]["environment"]["PORTAL_TRUSTED_PROXIES"] == 1


def test_compose_backup_can_write_and_overwrite_its_file() -> None:
    """A new volume has the owner of the image's directory; overwriting a backup needs `--force`."""
    backup = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]["backup"]
    (volume,) = backup["volumes"]
    folder = volume.split(":")[1]
    owned = rf"install --directory --owner=portal --group=portal {folder}\n"
    assert re.search(owned, (PROJECT / "Dockerfile").read_text())
    assert re.search(rf"portal backup --force \"{folder}/", backup["command"][0])
