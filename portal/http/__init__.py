"""What pages and JSON share: the request's context, files, streams, messages."""
