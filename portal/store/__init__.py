"""The repository layer: the only one that uses SQL. Functions take a session; none commits."""
