"""Pages on which administrators manage groups of users."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from flask import render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response

from portal.domain.people.groups import MAX_GROUP_NAME_CHARACTERS
from portal.errors import InvalidInput, NameTaken, NoSuchAccount, PortalError
from portal.http import context
from portal.services.people import accounts, groups
from portal.text.titles import MAX_DESCRIPTION_CHARACTERS
from portal.web.blueprint import PageBlueprint
from portal.web.layout import Answer, render_form, see_other

blueprint = PageBlueprint("admin_groups", __name__, "/admin/groups", context.for_administrators)


@blueprint.get("")
def show_all() -> Answer:
    return _list_page()


@blueprint.post("")
def create() -> Answer:
    try:
        group_id = groups.create_group(
            *context.caller(), name=_read_field("name"), description=_read_field("description")
        )
    except (InvalidInput, NameTaken) as error:
        return _list_page(error)
    return _done(group_id, gettext("Group created."))


@blueprint.get("/<uuid:group_id>")
def show(group_id: UUID) -> Answer:
    return _page(group_id)


@blueprint.post("/<uuid:group_id>")
def edit(group_id: UUID) -> Answer:
    try:
        groups.change_group(
            *context.caller(),
            group_id,
            name=_read_field("name"),
            description=_read_field("description"),
        )
    except (InvalidInput, NameTaken) as error:
        return _page(group_id, error, sent=request.form)
    return _done(group_id, gettext("Saved."))


@blueprint.get("/<uuid:group_id>/delete")
def confirm_delete(group_id: UUID) -> Answer:
    opened = groups.get_group(*context.caller(), group_id)
    return render_template("pages/people/group_delete.html", opened=opened)


@blueprint.post("/<uuid:group_id>/delete")
def delete(group_id: UUID) -> Answer:
    groups.delete_group(*context.caller(), group_id)
    return see_other(url_for("admin_groups.show_all"), gettext("Group deleted."))


@blueprint.post("/<uuid:group_id>/members")
def add_member(group_id: UUID) -> Answer:
    try:
        groups.add_member(*context.caller(), group_id, request.form.get("name", ""))
    except NoSuchAccount as error:
        return _page(group_id, error, sent=request.form)
    return _done(group_id, gettext("Member added."))


@blueprint.post("/<uuid:group_id>/members/<uuid:user_id>/remove")
def remove_member(group_id: UUID, user_id: UUID) -> Answer:
    groups.remove_member(*context.caller(), group_id, user_id)
    return _done(group_id, gettext("Member removed."))


def _read_field(name: str) -> str:
    return request.form.get(name, "")


def _done(group_id: UUID, message: str) -> Response:
    return see_other(url_for("admin_groups.show", group_id=group_id), message)


def _limits() -> dict[str, int]:
    return {
        "max_name": MAX_GROUP_NAME_CHARACTERS,
        "max_description": MAX_DESCRIPTION_CHARACTERS,
    }


def _list_page(error: PortalError | None = None) -> Answer:
    return render_form(
        "pages/people/groups.html",
        error,
        groups=groups.list_groups(context.services()),
        sent=request.form,
        **_limits(),
    )


def _page(
    group_id: UUID, error: PortalError | None = None, *, sent: Mapping[str, str] | None = None
) -> Answer:
    """Render a group; after an error, the form that failed has the values that were `sent`."""
    services, user = context.caller()
    opened = groups.get_group(services, user, group_id)
    members = {name for _, name in opened.members}
    listed = accounts.list_accounts(services, user)
    return render_form(
        "pages/people/group.html",
        error,
        opened=opened,
        sent=sent or {},
        names=[account.name for account in listed if account.name not in members],
        **_limits(),
    )
