"""A portal on several machines, all of them this one, as `docs/cluster.md` describes it.

    ./run cluster

A primary and streaming replicas of the embedded PostgreSQL, PgBouncer in transaction mode, Redis,
two web processes behind nginx, and two workers. PgBouncer, Redis and nginx are those of the system.
"""
