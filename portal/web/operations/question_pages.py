"""Questions without a good answer, how to resolve them, and the evaluation set built from them."""

from __future__ import annotations

from uuid import UUID

from flask import render_template, request, send_file, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.errors import N_
from portal.http import context
from portal.services.operations.reports import question_report
from portal.services.operations.reports.question_report import MAX_GOLD_CHARACTERS, PERIODS, Problem
from portal.web.answers.rendering import REASON_WORDS
from portal.web.blueprint import PageBlueprint
from portal.web.layout import see_other

blueprint = PageBlueprint(
    "admin_questions", __name__, "/admin/questions", context.for_administrators
)

PROBLEM_WORDS = {
    Problem.UNANSWERED: N_("No answer"),
    Problem.MODEL_FAILED: N_("Model failed"),
    Problem.LOW_CONFIDENCE: N_("Low confidence"),
    Problem.NOT_USEFUL: N_("Not helpful"),
    Problem.STALE: N_("Sources have changed"),
}
_DEFAULT_PERIOD = 30


@blueprint.get("")
def show() -> str:
    days, problem = _period(), _problem()
    return render_template(
        "pages/operations/admin_questions.html",
        report=question_report.show(*context.caller(), days=days, problem=problem),
        periods=PERIODS,
        problem=problem,
        problem_words=PROBLEM_WORDS,
        reason_words=REASON_WORDS,
        max_gold_characters=MAX_GOLD_CHARACTERS,
    )


@blueprint.post("/<uuid:message_id>/keep")
def keep(message_id: UUID) -> Response:
    gold = "" if "absent" in request.form else request.form.get("gold", "")
    question_report.keep(*context.caller(), message_id, gold)
    return _done(gettext("Added to the evaluation set."))


@blueprint.post("/<uuid:message_id>/remove")
def remove(message_id: UUID) -> Response:
    question_report.remove(*context.caller(), message_id)
    return _done(gettext("Removed from the evaluation set."))


@blueprint.get("/evaluation-set.zip")
def export() -> Response:
    file = question_report.export(*context.caller())
    return send_file(
        file, "application/zip", as_attachment=True, download_name="evaluation-set.zip"
    )


def _period() -> int:
    days = request.values.get("days", _DEFAULT_PERIOD, type=int)
    return days if days in PERIODS else _DEFAULT_PERIOD


def _problem() -> Problem | None:
    return request.values.get("problem", type=Problem)


def _done(message: str) -> Response:
    shown = url_for("admin_questions.show", days=_period(), problem=_problem() or None)
    return see_other(shown, message)
