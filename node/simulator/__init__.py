"""Nodes that exist by name only, and their pods by the clock."""
