"""Connections to a primary and its replicas: pools, health and errors."""
