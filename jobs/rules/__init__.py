"""Which jobs are accepted, which of their fields may change, and which actions apply."""
