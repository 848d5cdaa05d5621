"""Reading the web: which addresses may be requested, downloads within limits, pages."""
