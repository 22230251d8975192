"""Consumers of the log: what each remembers and plans, how it is run, and how far behind it is."""
