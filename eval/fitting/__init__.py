"""Fit the constants and weights that the portal ships."""
