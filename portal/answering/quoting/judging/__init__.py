"""The chance that a statement answers: what the model reads in it, shared words, and rules."""
