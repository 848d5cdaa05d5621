"""Reports for administrators and for monitoring."""
