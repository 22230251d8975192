"""Queues as rules: which are accepted, in which state they are, who is above whom, and what each deserves."""
