"""Characters: variants folded and normalised, look-alikes, writing systems."""
