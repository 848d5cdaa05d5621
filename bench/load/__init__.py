"""Realistic use by many users at once: `./run load` (docs/limits.md, "Capacity").

`scenario` defines what locust's users do, `machinery` starts the portal that they use, `watching`
samples it meanwhile, `idle` holds connections that do nothing, and `report` makes the tables.
"""
