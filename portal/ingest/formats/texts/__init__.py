"""The text of a file as it is stored: blocks, outline and white space."""
