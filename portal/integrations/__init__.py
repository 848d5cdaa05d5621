"""The portal's store for other programs. Nothing of the portal itself imports this, so that
serving needs none of their libraries."""
