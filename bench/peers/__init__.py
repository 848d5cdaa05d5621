"""The registry of peers: to add one, write a module and name its opener here."""

from bench.peers.chroma import chroma
from bench.peers.lance import lance
from bench.peers.langchain_postgres import langchain_postgres
from bench.peers.milvus import milvus

# Each takes the corpus and the data directory, fills its store unless an earlier run did, and
# yields one or more ways to search it.
PEERS = (langchain_postgres, chroma, lance, milvus)
