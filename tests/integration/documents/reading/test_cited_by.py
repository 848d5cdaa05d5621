"""Which of a user's own conversations cite a document, and each of its parts."""

from __future__ import annotations

import re

from portal import create_app
from portal.services.answers import conversations
from tests.conftest import Portal
from tests.factories.answers import ask

RULES = "# Rules\n\nRule 5 says that the fee is 5 euros for each day of travel."


def test_own_conversations_that_cite_a_document_are_listed(portal: Portal) -> None:
    rules = portal.add(RULES, name="rules.md")
    other = portal.add("# Quinces\n\nQuince trees are pruned in February.", name="quinces.md")
    ada = portal.user("ada")
    answers = {}
    for user, title in ((portal.admin, "Harbour of the admin"), (ada, "Harbour of Ada")):
        begun = conversations.create(portal.services, user, title)
        answers[user.id] = ask(portal.services, user, begun.id, "What is the fee of rule 5?")
    client = create_app(portal.services).test_client()

    def shown(address: str) -> str:
        return client.get(address, headers=portal.headers(ada) | {"Accept-Language": "en"}).text

    page = shown(f"/documents/{rules.id}")
    rows = re.findall(r'data-testid="cited-row"', page)
    (passage,) = re.findall(r'data-testid="passage-cited">(.*?)</p>', page, re.DOTALL)
    assert len(rows) == len(
        [citation for citation in answers[ada.id].citations if citation.was_cited]
    )
    assert "Harbour of Ada" in passage
    assert "Harbour of the admin" not in page
    cited = answers[ada.id].citations[0]
    assert f"/chat/{answers[ada.id].conversation_id}?source={cited.id}" in passage
    assert "Cited by" not in shown(f"/documents/{other.id}")

    # Several conversations with the same title share one line.
    for _ in range(2):
        begun = conversations.create(portal.services, ada, "Harbour of Ada")
        ask(portal.services, ada, begun.id, "What is the fee of rule 5?")
    page = shown(f"/documents/{rules.id}")
    (passage,) = re.findall(r'data-testid="passage-cited">(.*?)</details>', page, re.DOTALL)
    assert "Cited in 3 conversations" in passage
    assert passage.count("Harbour of Ada") == 1
    for one in conversations.list_conversations(portal.services, ada).items[:2]:
        conversations.delete(portal.services, ada, one.id)

    conversations.delete(portal.services, ada, answers[ada.id].conversation_id)
    assert "Cited by" not in shown(f"/documents/{rules.id}")
