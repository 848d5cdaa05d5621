"""Servers that tests start: real ones in processes of their own, and fakes on loopback ports."""
