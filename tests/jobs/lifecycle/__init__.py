"""The life of jobs played by chance: what may happen to them, and what must come of it."""
