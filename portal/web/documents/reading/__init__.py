"""Pages on which one document is read, as text or as pages, with its versions."""
