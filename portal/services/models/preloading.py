"""Loading of the active model and the dictionary when a web process starts, so that no search waits
for them."""

from __future__ import annotations

import gc
import threading

import structlog

from portal.embeddings.loading import mark_as_serving
from portal.services import Services
from portal.services.models import catalog
from portal.store.embedding_models import registry
from portal.text.characters.folding import spellings
from portal.text.terms import lexicon

log = structlog.get_logger(__name__)

# Models of these providers are loaded on another machine.
_ELSEWHERE = {"openai"}


def load_ahead(services: Services) -> threading.Thread:
    """Load the model in the background; queries until then wait up to the documented time and are
    then answered by keywords. Call it in the process that serves: neither the thread nor a model
    survives a fork."""
    mark_as_serving()
    thread = threading.Thread(target=_load, args=(services,), name="load-ahead", daemon=True)
    thread.start()
    return thread


def _load(services: Services) -> None:
    _load_model(services)
    lexicon.load()
    spellings("a")  # Otherwise the first spelling correction would wait a third of a second.
    # All of this stays: scanning it for garbage would stop all threads, 0.2 s at a time.
    gc.collect()
    gc.freeze()


def _load_model(services: Services) -> None:
    try:
        with services.database.begin() as session:
            serving = registry.find_active(session)
        if serving is None or serving.provider in _ELSEWHERE:
            return
        embedder = catalog.loaded(services, serving).embedder
        embedder.embed_chunks(["?"])  # Waits for the model, unlike a query.
        embedder.embed_query("?")
    except Exception as error:  # noqa: BLE001 - searches continue without it, and report the error
        log.warning("model_not_loaded_ahead", error_type=type(error).__name__)
    else:
        log.info("model_loaded_ahead", model=serving.name)
