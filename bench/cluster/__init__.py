"""A portal as on several machines, all on this one, as `docs/cluster.md` describes it.

    ./run cluster

A primary and streaming replicas of the embedded PostgreSQL, PgBouncer in transaction mode, Redis,
two web processes behind nginx, and two workers. PgBouncer, Redis and nginx are those of the system.
"""
