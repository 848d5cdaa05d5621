# Image for web processes, workers and migrations; compose.yaml starts all three. Everything is installed in a stage of
# its own, so that the image has neither pip's leftovers nor tests. It runs with a read-only root file system and writes
# to /var/lib/portal and /tmp only.
FROM python:3.12-slim-bookworm AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/portal
RUN python -m venv .venv
ENV PATH=/srv/portal/.venv/bin:$PATH

# Install from the locks first: this layer stays cached while the code changes.
COPY requirements/core.txt requirements/prune.py requirements/
RUN pip install --require-hashes --no-deps -r requirements/core.txt && python requirements/prune.py
COPY . .
RUN pip install --no-deps --no-build-isolation --editable . && python -m compileall -q portal

FROM python:3.12-slim-bookworm
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PATH=/srv/portal/.venv/bin:$PATH
WORKDIR /srv/portal
# Chinese, Japanese and Korean for PDFs that do not carry their fonts, in 5 MB: docs/formats.md.
RUN apt-get update && apt-get install --yes --no-install-recommends fonts-wqy-microhei && rm -rf /var/lib/apt/lists/*
# The number is that of deploy/kubernetes.
# A volume takes the owner of the directory that it is mounted on.
RUN useradd --system --uid 10001 --user-group --create-home --home-dir /var/lib/portal portal \
  && install --directory --owner=portal --group=portal /backups
COPY --from=build /srv/portal /srv/portal

USER 10001:10001
ENV PORTAL_DATA_DIR=/var/lib/portal/data
VOLUME /var/lib/portal
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]

# By default the image serves everything with the embedded PostgreSQL.
CMD ["portal", "serve", "--host", "0.0.0.0", "--port", "8000"]
