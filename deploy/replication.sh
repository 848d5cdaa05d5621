#!/bin/sh
# Lets the replica of compose.yaml connect; run once, when the database is made.
set -eu
echo "host replication $POSTGRES_USER all scram-sha-256" >>"$PGDATA/pg_hba.conf"
