"""The PostgreSQL that comes with the portal, and the requirements on any PostgreSQL server."""
