"""Who may use which route: the rows that `test_route_access.py` checks."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from portal.domain.people import Scope
from tests.conftest import PASSWORD

READ, WRITE, ADMIN = Scope


class Who(Enum):
    """Who has access."""

    ALL = "everyone, signed in or not"
    PEOPLE = "everyone who is signed in"
    SEEING = "who may see the document: its owner and administrators, where it is private"
    OWN = "the owner alone, without administrators"
    ADMINS = "administrators"


class Row(NamedTuple):
    """A route's access. `ok` is the status of a valid request, `scope` the scope that its token
    needs. `sends` are arguments of the test client; `<name>` is replaced by that object."""

    who: Who
    ok: int
    scope: Scope = READ
    sends: dict[str, Any] = {}  # noqa: RUF012 - never changed
    is_trashed: bool = False
    is_question: bool = False


def form(**values: str) -> dict[str, Any]:
    return {"data": values}


def json(**values: Any) -> dict[str, Any]:
    return {"json": values}


def query(**values: str) -> dict[str, Any]:
    return {"query_string": values}


ALL, PEOPLE, SEEING, OWN, ADMINS = Who
QUESTION = "When are the quince trees pruned?"
MODEL = "hashing-384"

ROWS: dict[str, Row] = {
    # --- open: each on purpose ---
    "api_docs.show": Row(ALL, 200),  # describes, holds nothing
    "openapi.spec": Row(ALL, 200),  # describes, holds nothing
    "assets.own": Row(ALL, 404),  # style and scripts; the row asks for one that is not there
    "assets.vendor": Row(ALL, 404),  # the same
    "auth_api.create_token": Row(ALL, 200, sends=json(username="zoe", password=PASSWORD)),
    "auth_api.refresh_token": Row(ALL, 401, sends=json(refresh_token="x")),  # its own proof
    "ops.show_health": Row(ALL, 200),  # for load balancers
    "ops.show_live": Row(ALL, 200),
    "ops.show_ready": Row(ALL, 200),
    "ops.show_vector_store": Row(ALL, 200),  # for operators; counts and versions only
    "preferences.set_language": Row(ALL, 303, sends=form(language="en")),  # of the sign-in page
    "preferences.set_theme": Row(ALL, 303, sends=form(theme="dark")),
    "sign_in.show": Row(ALL, 200),
    "sign_in.sign_in": Row(ALL, 303, sends=form(name="zoe", password=PASSWORD)),
    "sign_in.confirm_sign_out": Row(ALL, 303),  # also with a session that has expired
    "sign_in.sign_out": Row(ALL, 303),
    "sign_in.show_invitation": Row(ALL, 404),  # the link is the proof; the row has a wrong one
    "sign_in.show_password_reset": Row(ALL, 404),  # the same
    "sign_in.reset_password": Row(ALL, 404, sends=form(password="x", password_again="x")),
    "sign_in.accept_invitation": Row(ALL, 404, sends=form(name="x", password=PASSWORD)),
    "sign_in.show_registration": Row(ALL, 404),  # unless PORTAL_REGISTRATION is open
    "sign_in.register": Row(ALL, 404, sends=form(name="x", password=PASSWORD)),
    # These are 404 without a provider in the settings; tests/integration/people/oidc has one.
    "oidc.begin_sign_in": Row(ALL, 404),
    "oidc.finish": Row(ALL, 404),
    "oidc_logout.end_sessions": Row(ALL, 400, sends=form(logout_token="x")),  # its own proof
    # --- tokens and the account ---
    "oidc.begin_link": Row(PEOPLE, 404, WRITE),
    "oidc.begin_confirm": Row(PEOPLE, 404, WRITE),
    "oidc.unlink": Row(PEOPLE, 404, WRITE, form(issuer="x", subject="y")),
    "auth_api.revoke_token": Row(PEOPLE, 204, sends=json(token="x")),
    "auth_api.confirm": Row(PEOPLE, 204, sends=json(password=PASSWORD)),
    "personal_tokens.list_tokens": Row(PEOPLE, 200),
    "personal_tokens.create_token": Row(PEOPLE, 201, WRITE, json(name="script")),
    "personal_tokens.revoke_token": Row(OWN, 204, WRITE),
    "account.show": Row(PEOPLE, 200),
    "account.change_password": Row(
        PEOPLE, 422, WRITE, form(current="wrong", new="x", new_again="y")
    ),
    "account.confirm_delete": Row(PEOPLE, 200),
    "account.delete": Row(PEOPLE, 422, WRITE, form(documents="trash", confirm_password="wrong")),
    "sessions.show": Row(PEOPLE, 200),
    "sessions.end": Row(OWN, 303, WRITE),
    "sessions.end_others": Row(PEOPLE, 303, WRITE),
    "sessions_api.list_sessions": Row(PEOPLE, 200),
    "sessions_api.end_session": Row(OWN, 204, WRITE),
    "sessions_api.end_others": Row(PEOPLE, 204, WRITE),
    "confirming.show": Row(PEOPLE, 200),
    "confirming.confirm": Row(PEOPLE, 303, WRITE, form(confirm_password=PASSWORD)),
    "confirming.resume": Row(PEOPLE, 303),
    "account.save_preferences": Row(PEOPLE, 303, WRITE, form(domain="law")),
    "account.create_token": Row(PEOPLE, 303, WRITE, form(name="script", days="30")),
    "account.revoke_token": Row(OWN, 303, WRITE),
    "second_step.show": Row(ALL, 303),  # to the password, which comes first
    "second_step.verify_code": Row(ALL, 303, sends=form(code="123456")),
    "second_step.send_second_step_options": Row(ALL, 303),
    "second_step.verify_passkey": Row(ALL, 303, sends=form(credential="{}")),
    "second_step.send_sign_in_options": Row(ALL, 200),  # a random challenge
    "second_step.sign_in_with_passkey": Row(ALL, 401, sends=form(credential="{}")),
    "second_factors.show": Row(PEOPLE, 200),
    "second_factors.begin_totp": Row(PEOPLE, 303, WRITE),
    "second_factors.show_totp": Row(PEOPLE, 200),  # of the enrolment that was begun before
    "second_factors.confirm_totp": Row(PEOPLE, 422, WRITE, form(code="wrong")),
    "second_factors.remove_totp": Row(PEOPLE, 404, WRITE),
    "second_factors.send_options": Row(PEOPLE, 200, WRITE),
    "second_factors.add_passkey": Row(PEOPLE, 422, WRITE, form(name="x", credential="{}")),
    "second_factors.remove_passkey": Row(OWN, 303, WRITE),
    "second_factors.replace_recovery_codes": Row(PEOPLE, 303, WRITE),
    "second_factors_api.show": Row(PEOPLE, 200),
    "second_factors_api.begin_totp": Row(PEOPLE, 201, WRITE),
    "second_factors_api.confirm_totp": Row(PEOPLE, 401, WRITE, json(code="wrong")),
    "second_factors_api.remove_totp": Row(PEOPLE, 404, WRITE),
    "second_factors_api.remove_passkey": Row(OWN, 204, WRITE),
    "second_factors_api.replace_recovery_codes": Row(PEOPLE, 201, WRITE),
    # --- documents ---
    "home.show": Row(PEOPLE, 200),
    "go.show": Row(PEOPLE, 200, sends=query(find="quince")),
    "go.show_keys": Row(ALL, 200),  # words only
    "home.load_examples": Row(PEOPLE, 303, WRITE),
    "home.remove_examples": Row(PEOPLE, 303, WRITE),
    "documents.index": Row(PEOPLE, 200),
    "documents.progress": Row(PEOPLE, 200),
    "documents.confirm_delete": Row(SEEING, 200),
    "documents.delete": Row(SEEING, 303, WRITE),
    "document_jobs.cancel": Row(SEEING, 303, WRITE),
    "document_jobs.retry": Row(SEEING, 409, WRITE),  # only what has failed
    "document_jobs.retry_failed": Row(PEOPLE, 303, WRITE),
    "uploads.upload": Row(PEOPLE, 303, WRITE, {"data": {"file": "<file>"}}),
    "reading.show": Row(SEEING, 200),
    "reading.original_file": Row(SEEING, 200),
    # The document here is not a PDF: see documents/reading/test_page_views.py.
    "page_views.page": Row(SEEING, 303),
    "page_views.picture": Row(SEEING, 404),
    "page_views.image": Row(SEEING, 404),
    "previews.show": Row(SEEING, 303),
    "reading.reindex": Row(SEEING, 303, WRITE),
    "revisions.show_all": Row(SEEING, 200),
    "revisions.upload": Row(SEEING, 303, WRITE, {"data": {"file": "<file>"}}),
    "revisions.discard": Row(SEEING, 409, WRITE),  # only what could not be read
    "revisions.restore": Row(SEEING, 303, WRITE),
    "revisions.show": Row(SEEING, 200),
    "revisions.original_file": Row(SEEING, 200),
    "reading.preview_move": Row(SEEING, 200),
    "reading.edit": Row(SEEING, 303, WRITE, form(title="Another", visibility="private")),
    "trash.show": Row(PEOPLE, 200),
    "trash.confirm_purge": Row(SEEING, 200, is_trashed=True),
    "trash.purge": Row(SEEING, 303, WRITE, is_trashed=True),
    "trash.restore": Row(SEEING, 303, WRITE, is_trashed=True),
    "knowledge.list_documents": Row(PEOPLE, 200),
    "knowledge.upload_documents": Row(PEOPLE, 202, WRITE, {"data": {"file": "<file>"}}),
    "knowledge.get_document": Row(SEEING, 200),
    "knowledge.get_content": Row(SEEING, 200),
    "knowledge.get_file": Row(SEEING, 200),
    "knowledge.delete_document": Row(SEEING, 204, WRITE),
    "knowledge.reindex_document": Row(SEEING, 202, WRITE, json(encoding="utf-8")),
    "revisions_api.add_revision": Row(SEEING, 202, WRITE, {"data": {"file": "<file>"}}),
    "revisions_api.list_revisions": Row(SEEING, 200),
    "revisions_api.discard_unread": Row(SEEING, 409, WRITE),  # only what could not be read
    "revisions_api.get_revision_content": Row(SEEING, 200),
    "revisions_api.get_revision_file": Row(SEEING, 200),
    "revisions_api.get_differences": Row(SEEING, 200, sends=query(against="1")),
    "knowledge.restore_document": Row(SEEING, 200, WRITE, is_trashed=True),
    "jobs.list_jobs": Row(PEOPLE, 200),
    "jobs.get_job": Row(SEEING, 200),
    "jobs.cancel": Row(SEEING, 409, WRITE),  # only what is being prepared
    "jobs.retry": Row(SEEING, 409, WRITE),  # only what has failed
    "jobs.retry_failed": Row(PEOPLE, 202, WRITE),
    "notifications.index": Row(PEOPLE, 200),
    "notifications.show_state": Row(PEOPLE, 200),
    "notifications.deliver": Row(PEOPLE, 303, WRITE),
    "notifications.open_one": Row(OWN, 303, WRITE),
    "notifications.mark_read": Row(PEOPLE, 303, WRITE),
    "notifications_api.list_notifications": Row(PEOPLE, 200),
    "notifications_api.mark_read": Row(PEOPLE, 200, WRITE, json(all=True)),
    "documents_v1.list_documents": Row(PEOPLE, 200),
    "documents_v1.get_document": Row(SEEING, 200),
    "chunks.list_chunks": Row(SEEING, 200),
    "chunks.get_chunk": Row(SEEING, 200),
    "chunks.add_chunks": Row(SEEING, 201, WRITE, json(content="More.", chunk_index=7)),
    "chunks.delete_chunk": Row(SEEING, 200, WRITE),
    "chunks.delete_chunks": Row(SEEING, 200, WRITE),
    "knowledge.list_tags": Row(PEOPLE, 200),
    "knowledge.set_tags": Row(SEEING, 200, WRITE, json(tags=["2026"])),
    "knowledge.move_document": Row(SEEING, 200, WRITE, json(folder_id=None)),
    # --- many documents ---
    "bulk.ask": Row(PEOPLE, 200, WRITE, form(action="delete", matching="1")),
    "bulk.apply": Row(PEOPLE, 303, WRITE, form(action="domain", matching="1", q="no such title")),
    "bulk.show_report": Row(OWN, 200),
    "bulk.undo": Row(OWN, 303, WRITE),
    "bulk_api.apply": Row(PEOPLE, 200, WRITE, json(action="delete", ids=[])),
    "bulk_api.undo": Row(OWN, 200, WRITE),
    # --- folders ---
    "folders.show_new": Row(PEOPLE, 200),
    "folders.create": Row(PEOPLE, 303, WRITE, form(name="New", visibility="private")),
    "folders.show_edit": Row(SEEING, 200),
    "folders.edit": Row(SEEING, 303, WRITE, form(name="<folder_id>")),
    "folders.confirm_delete": Row(SEEING, 200),
    "folders.delete": Row(SEEING, 303, WRITE, form(documents="trash")),
    "folders_api.list_folders": Row(PEOPLE, 200),
    "folders_api.create_folder": Row(PEOPLE, 201, WRITE, json(name="B", visibility="private")),
    "folders_api.get_folder": Row(SEEING, 200),
    "folders_api.change_folder": Row(SEEING, 200, WRITE, json(description="more")),
    "folders_api.move_folder": Row(SEEING, 200, WRITE, json(parent_id=None)),
    "folders_api.delete_folder": Row(SEEING, 200, WRITE, query(documents="keep")),
    "folders_api.preview_move": Row(
        PEOPLE, 200, sends=json(document_ids=["<document_id>"], folder_id=None)
    ),
    "folders_api.preview_change": Row(SEEING, 200, sends=query(change="delete")),
    "folders_api.list_members": Row(SEEING, 200),
    "folders_api.set_member": Row(SEEING, 200, WRITE, json(kind="user", name="zoe", role="reader")),
    "folders_api.remove_member": Row(SEEING, 204, WRITE),
    # No directory may be followed here, and the folders have no source.
    "folder_sources.show": Row(SEEING, 200),
    "folder_sources.tie": Row(
        SEEING, 422, WRITE, form(kind="directory", address="/srv", every_minutes="60")
    ),
    "folder_sources.run": Row(SEEING, 404, WRITE),
    "folder_sources.untie": Row(SEEING, 404, WRITE),
    "folder_sources_api.get_source": Row(SEEING, 404),
    "folder_sources_api.set_source": Row(SEEING, 422, WRITE, json(address="/srv")),
    "folder_sources_api.request_run": Row(SEEING, 404, WRITE),
    "folder_sources_api.remove_source": Row(SEEING, 404, WRITE),
    "folders.show_members": Row(SEEING, 200),
    "folders.set_access": Row(SEEING, 303, WRITE, form(visibility="private")),
    "folders.set_member": Row(SEEING, 303, WRITE, form(kind="user", name="zoe", role="reader")),
    "folders.remove_member": Row(SEEING, 303, WRITE),
    # --- search and answers ---
    "search.show": Row(PEOPLE, 200, sends=query(q="quince")),
    "saved_searches.save": Row(PEOPLE, 303, WRITE, form(q="quince", name="Quinces")),
    "saved_searches.rename": Row(OWN, 303, WRITE, form(name="<search_id>")),
    "saved_searches.delete": Row(OWN, 303, WRITE),
    "search.show_why_not": Row(PEOPLE, 200, sends=query(q="quince", title="x")),
    "knowledge.search": Row(PEOPLE, 200, sends=json(query="quince")),
    "knowledge.why_not": Row(SEEING, 200, sends=query(query="quince", document_id="<document_id>")),
    "chunk_search.search_semantic": Row(PEOPLE, 200, sends=json(query_text="quince")),
    "chunk_search.search_text": Row(PEOPLE, 200, sends=json(query="quince")),
    "chunk_search.search_hybrid": Row(PEOPLE, 200, sends=json(query_text="quince")),
    "chunk_search.search_batch": Row(PEOPLE, 200, sends=json(queries=[{"query_text": "quince"}])),
    "chunk_search.search_similar": Row(SEEING, 200),
    "documents_v1.search": Row(PEOPLE, 200, sends=json(query="quince")),
    "documents_v1.search_by_address": Row(PEOPLE, 200, sends=query(q="quince")),
    "documents_v1.answer": Row(PEOPLE, 200, sends=json(query=QUESTION)),
    "semantic.search": Row(PEOPLE, 200, sends=json(query="quince")),
    "semantic.search_by_address": Row(PEOPLE, 200, sends=query(query="quince")),
    "semantic.show_status": Row(PEOPLE, 200),
    # --- selection ---
    "selection.set_default": Row(SEEING, 303, WRITE, form(state="off")),
    "selection.set_folder_default": Row(SEEING, 303, WRITE, form(state="off")),
    "selection.set_folder": Row(OWN, 303, WRITE, form(state="off")),
    "selection.show": Row(OWN, 200),
    "selection.set_all": Row(OWN, 303, WRITE, form(state="off")),
    "selection.set_one": Row(OWN, 303, WRITE, form(state="off")),
    "selection_api.list_defaults": Row(PEOPLE, 200),
    "selection_api.set_default": Row(SEEING, 200, WRITE, json(enabled=False)),
    "selection_api.forget_default": Row(SEEING, 204, WRITE),
    "selection_api.list_overrides": Row(OWN, 200),
    "selection_api.set_all_overrides": Row(OWN, 204, WRITE, json(enabled=False)),
    "selection_api.set_override": Row(OWN, 200, WRITE, json(enabled=False)),
    "selection_api.forget_override": Row(OWN, 204, WRITE),
    "selection_api.list_folder_defaults": Row(PEOPLE, 200),
    "selection_api.set_folder_default": Row(SEEING, 200, WRITE, json(enabled=False)),
    "selection_api.forget_folder_default": Row(SEEING, 204, WRITE),
    "selection_api.list_folder_overrides": Row(OWN, 200),
    "selection_api.set_folder_override": Row(OWN, 200, WRITE, json(enabled=False)),
    "selection_api.forget_folder_override": Row(OWN, 204, WRITE),
    # --- conversations ---
    "chat.index": Row(PEOPLE, 200),
    "chat.find_about": Row(PEOPLE, 200),
    "chat.create": Row(PEOPLE, 303, WRITE, form(content="")),
    "chat.show": Row(OWN, 200),
    "chat.export": Row(OWN, 200),
    "chat.show_rename": Row(OWN, 200),
    "chat.rename": Row(OWN, 303, WRITE, form(title="Another")),
    "chat.pin": Row(OWN, 303, WRITE),
    "chat.delete": Row(OWN, 303, WRITE),
    "chat.restore": Row(OWN, 303, WRITE),
    "messages.ask": Row(OWN, 303, WRITE, form(content=QUESTION)),
    "messages.show": Row(OWN, 303),
    "messages.edit": Row(OWN, 200, is_question=True),
    "messages.replay": Row(OWN, 200),
    "messages.retry": Row(OWN, 303, WRITE),
    "messages.stop": Row(OWN, 303, WRITE),
    "messages.set_feedback": Row(OWN, 303, WRITE, form(feedback="useful")),
    "messages.branch": Row(OWN, 303, WRITE),
    "sharing.show": Row(OWN, 200),
    "sharing.add": Row(OWN, 303, WRITE, form(name="zoe")),
    "sharing.remove": Row(OWN, 404, WRITE),  # shared with no one here; it has its own tests
    "sharing.show_all": Row(PEOPLE, 200),
    "sharing.read": Row(OWN, 303),  # owners are sent to their own page
    "sharing.leave": Row(OWN, 404, WRITE),
    "citations.card": Row(OWN, 200),
    "citations.show": Row(OWN, 200),
    "conversations_api.list_conversations": Row(PEOPLE, 200),
    "conversations_api.create_conversation": Row(PEOPLE, 201, WRITE, json(title="New")),
    "conversations_api.get_conversation": Row(OWN, 200),
    "conversations_api.export_conversation": Row(OWN, 200),
    "conversations_api.change_conversation": Row(OWN, 200, WRITE, json(title="Another")),
    "conversations_api.delete_conversation": Row(OWN, 204, WRITE),
    "conversations_api.ask": Row(OWN, 200, WRITE, json(content=QUESTION)),
    "conversations_api.get_message": Row(OWN, 200),
    "conversations_api.retry": Row(OWN, 200, WRITE),
    "conversations_api.stop": Row(OWN, 200, WRITE),
    "conversations_api.set_feedback": Row(OWN, 200, WRITE, json(feedback="useful")),
    "conversations_api.get_citation": Row(OWN, 200),
    "conversations_api.verify": Row(OWN, 200),
    "sharing_api.list_readers": Row(OWN, 200),
    "sharing_api.add_reader": Row(OWN, 200, WRITE, json(name="zoe")),
    "sharing_api.remove_reader": Row(OWN, 404, WRITE),
    "sharing_api.list_shared": Row(PEOPLE, 200),
    "sharing_api.get_shared": Row(OWN, 404),
    "sharing_api.leave": Row(OWN, 404, WRITE),
    # --- administration ---
    "admin.show": Row(ADMINS, 200, ADMIN),
    "admin_overview.show": Row(ADMINS, 200, ADMIN),
    "admin_overview.show_components": Row(ADMINS, 200, ADMIN),
    "admin.invite": Row(ADMINS, 303, ADMIN),
    "admin.withdraw_invitation": Row(ADMINS, 303, ADMIN),
    "admin.set_disabled": Row(ADMINS, 303, ADMIN, form(disabled="true")),
    "admin.remove_second_factors": Row(ADMINS, 303, ADMIN),
    "second_factors_admin_api.remove_all": Row(ADMINS, 204, ADMIN),
    "admin_users.show": Row(ADMINS, 200, ADMIN),
    "admin_users.set_role": Row(ADMINS, 303, ADMIN, form(role="user")),
    "admin_users.reset_password": Row(ADMINS, 303, ADMIN),
    "admin_users.end_sessions": Row(ADMINS, 303, ADMIN),
    "admin_users.confirm_delete": Row(ADMINS, 200, ADMIN),
    "admin_users.delete": Row(ADMINS, 303, ADMIN, form(documents="trash")),
    "users_api.list_users": Row(ADMINS, 200, ADMIN),
    "users_api.change_user": Row(ADMINS, 200, ADMIN, json(is_admin=False)),
    "users_api.reset_password": Row(ADMINS, 201, ADMIN),
    "users_api.end_sessions": Row(ADMINS, 204, ADMIN),
    "users_api.delete_user": Row(ADMINS, 204, ADMIN, query(documents="trash")),
    "users_api.delete_own": Row(PEOPLE, 422, WRITE, json(documents="transfer", password=PASSWORD)),
    "groups_api.list_groups": Row(ADMINS, 200, ADMIN),
    "groups_api.create_group": Row(ADMINS, 201, ADMIN, json(name="Law")),
    "groups_api.get_group": Row(ADMINS, 200, ADMIN),
    "groups_api.change_group": Row(ADMINS, 200, ADMIN, json(description="more")),
    "groups_api.delete_group": Row(ADMINS, 204, ADMIN),
    "groups_api.add_member": Row(ADMINS, 200, ADMIN, json(name="zoe")),
    "groups_api.remove_member": Row(ADMINS, 204, ADMIN),
    "admin_groups.show_all": Row(ADMINS, 200, ADMIN),
    "admin_groups.create": Row(ADMINS, 303, ADMIN, form(name="Finance")),
    "admin_groups.show": Row(ADMINS, 200, ADMIN),
    "admin_groups.edit": Row(ADMINS, 303, ADMIN, form(name="<group_id>")),
    "admin_groups.confirm_delete": Row(ADMINS, 200, ADMIN),
    "admin_groups.delete": Row(ADMINS, 303, ADMIN),
    "admin_groups.add_member": Row(ADMINS, 303, ADMIN, form(name="zoe")),
    "admin_groups.remove_member": Row(ADMINS, 303, ADMIN),
    "admin_jobs.show": Row(ADMINS, 200, ADMIN),
    "admin_jobs.cancel": Row(ADMINS, 303, ADMIN),
    "admin_jobs.retry": Row(ADMINS, 303, ADMIN),
    "admin_jobs.retry_failed": Row(ADMINS, 303, ADMIN),
    "ops.show_metrics": Row(ADMINS, 200, ADMIN),  # settings open it further
    "admin_audit.show": Row(ADMINS, 200, ADMIN),
    "admin_audit.export": Row(ADMINS, 200, ADMIN),
    "audit_api.list_audit_log": Row(ADMINS, 200, ADMIN),
    "admin_models.show": Row(ADMINS, 200, ADMIN),
    "admin_models.build": Row(ADMINS, 422, ADMIN, form(name="no such model")),
    "admin_models.switch": Row(ADMINS, 303, ADMIN, form(name="no such model")),
    "admin_models.rollback": Row(ADMINS, 303, ADMIN),
    "admin_models.confirm_drop": Row(ADMINS, 200, ADMIN, query(name=MODEL)),
    "admin_models.drop": Row(ADMINS, 303, ADMIN, form(name="no such model")),
    "admin_search.show": Row(ADMINS, 200, ADMIN),
    "admin_search.save": Row(ADMINS, 303, ADMIN, form(action="defaults")),
    "admin_questions.show": Row(ADMINS, 200, ADMIN),
    # Whether an answer needs attention depends on the search, so these get the id of a question.
    "admin_questions.keep": Row(ADMINS, 404, ADMIN, is_question=True),
    "admin_questions.remove": Row(ADMINS, 404, ADMIN, is_question=True),
    "admin_questions.export": Row(ADMINS, 200, ADMIN),
    "admin_answers.show": Row(ADMINS, 200, ADMIN),
    "admin_answers.connect": Row(ADMINS, 422, ADMIN, form(api_base="ftp://nowhere")),
    "admin_answers.disconnect": Row(ADMINS, 303, ADMIN),
    "admin_answers.load_models": Row(ADMINS, 404, ADMIN),  # no endpoint is connected
    "admin_answers.try_out": Row(ADMINS, 404, ADMIN, form(model="m")),  # the same
    "admin_answers.choose": Row(ADMINS, 303, ADMIN, form(writer="quotations")),
    "documents_v1.embed": Row(ADMINS, 200, ADMIN, json(batch_size=10)),
}

# The objects of requests.
