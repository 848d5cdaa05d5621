"""Files that come in: uploads and imports, within quotas and free space."""
