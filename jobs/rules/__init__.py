"""Which jobs are accepted, what of them may change, and what may be done with them."""
