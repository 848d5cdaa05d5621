"""The repository: the only place that speaks SQL. Functions take a session; none commits."""
