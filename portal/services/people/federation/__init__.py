"""Sign-in by an OpenID Connect provider, and tokens of other issuers."""
