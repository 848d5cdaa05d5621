"""The PostgreSQL that comes with the portal, and what any PostgreSQL must be able to do for it."""
