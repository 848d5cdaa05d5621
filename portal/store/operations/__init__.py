"""SQL of health checks, the audit log and administrators' reports."""
