"""The scheduler's configuration: which actions it takes, and with which plugins."""
