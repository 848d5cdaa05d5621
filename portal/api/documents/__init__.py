"""The JSON API for documents, folders and jobs."""
