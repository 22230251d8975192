"""Templates with parameters: a job's YAML with placeholders, and a small form that gives each of them a value."""
