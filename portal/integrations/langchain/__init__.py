"""Use the portal from LangChain. Needs the extra `langchain`."""

from importlib.util import find_spec

if find_spec("langchain_core") is None:
    raise ImportError(
        "portal.integrations.langchain needs the extra `langchain`: run ./run setup --langchain"
    )

from portal.integrations.langchain.portal_retriever import PortalRetriever
from portal.integrations.langchain.portal_store import PortalVectorStore
from portal.integrations.langchain.store import PostgresVectorStore

__all__ = ["PortalRetriever", "PortalVectorStore", "PostgresVectorStore"]
