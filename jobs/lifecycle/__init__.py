"""The life of a job as tables: what an action means in a phase, which phase comes next, and what is said about it."""
