"""Real use by many people at once: `./run load` (docs/limits.md, "Capacity").

`scenario` is what locust's users do, `machinery` starts the portal that they use, `watching`
samples it meanwhile, `idle` holds connections that do nothing, and `report` makes the tables.
"""
