"""What the portal is about, as plain values. No input, no output, no framework."""
