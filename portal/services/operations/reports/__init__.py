"""What administrators and monitoring read about the portal."""
