"""Embedding models: build, compare, switch, switch back, and drop."""

from __future__ import annotations

from flask import render_template, request, url_for
from flask_babel import gettext

from portal.errors import N_, InvalidInput, NoSuchModel, PortalError
from portal.http import context
from portal.http.messages import error_message
from portal.services.models import switching
from portal.services.models.switching import ModelSummary
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, render_form, see_other, wants_fragment

blueprint = PageBlueprint("admin_models", __name__, "/admin/models", context.for_administrators)

STATUS_WORDS = {
    "building": N_("Not fully built"),
    "ready": N_("Built, ready to use"),
    "active": N_("Active"),
    "retired": N_("Previously active"),
}
STAGE_WORDS = {
    "queued": N_("Waiting for a worker"),
    "embedding": N_("Embedding passages"),
    "indexing": N_("Building the index"),
    "comparing": N_("Comparing"),
    "failed": N_("Build failed"),
}


class NoSuchProvider(InvalidInput):
    message = N_(
        "“%(name)s” has no known provider. Enter bundled, sentence-transformers:MODEL or "
        "openai:MODEL."
    )


@blueprint.get("")
def show() -> Answer:
    return _page()


def _page(error: PortalError | None = None, name: str = "") -> Answer:
    """Render the models; after an error, the form has the refused name."""
    models = switching.list_models(context.services())
    values = {
        "models": models,
        "name": name,
        "is_building": any(model.build.is_under_way for model in models),
        "status_words": STATUS_WORDS,
        "stage_words": STAGE_WORDS,
    }
    if wants_fragment("model-list"):
        return render_template("fragments/models/_list.html", **values)
    return render_form("pages/operations/models.html", error, **values)


@blueprint.post("/build")
def build() -> Answer:
    try:
        model = switching.request_build(context.services(), _read_name())
    except NoSuchModel:
        return _page(NoSuchProvider(name=_read_name()), _read_name())
    except InvalidInput as error:
        return _page(error, _read_name())
    except PortalError as error:
        return _refuse(error)
    return _done(gettext("“%(name)s” is being built in the background.", name=model.name))


@blueprint.post("/switch")
def switch() -> Answer:
    try:
        done = switching.switch(context.services(), _read_name(), actor=context.user())
    except PortalError as error:
        return _refuse(error)
    return _done(gettext("Searches now use “%(name)s”.", name=done.model.name))


@blueprint.post("/rollback")
def rollback() -> Answer:
    try:
        done = switching.rollback(context.services(), actor=context.user())
    except PortalError as error:
        return _refuse(error)
    return _done(gettext("Searches use “%(name)s” again.", name=done.model.name))


@blueprint.get("/drop")
def confirm_drop() -> Answer:
    name = request.args.get("name", "")
    summary = _find(name)
    if wants_fragment():
        return render_template("fragments/models/_confirm_drop.html", summary=summary)
    return render_template("pages/operations/confirm_drop_model.html", summary=summary)


@blueprint.post("/drop")
def drop() -> Answer:
    name = _read_name()
    try:
        switching.drop(context.services(), name, actor=context.user())
    except PortalError as error:
        return _refuse(error)
    return _done(gettext("“%(name)s” and its vectors were deleted.", name=name))


def _read_name() -> str:
    return request.form.get("name", "").strip()


def _find(name: str) -> ModelSummary:
    for summary in switching.list_models(context.services()):
        if summary.model.name == name:
            return summary
    raise NoSuchModel(name=name)


def _done(message: str) -> Answer:
    return see_other(url_for("admin_models.show"), message)


def _refuse(error: PortalError) -> Answer:
    return see_other(url_for("admin_models.show"), error_message(error), kind="error")
