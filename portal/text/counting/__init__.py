"""Estimates of tokens, without a model."""
