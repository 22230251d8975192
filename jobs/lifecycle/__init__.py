"""The life of a job as tables: what an action does in a phase, which phase comes next, and the messages about it."""
