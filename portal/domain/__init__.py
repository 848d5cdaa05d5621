"""Values and protocols of the portal. No input, no output, no framework."""
