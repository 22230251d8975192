"""One scheduling cycle: who is let in, who is placed, and what those that wait are told."""
