"""The portal's store for programs of others. Nothing of the portal itself imports this, so that
serving needs none of their libraries."""
