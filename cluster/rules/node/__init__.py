"""Nodes: which are accepted, what they say of themselves, what they may do, and by what they show that they live."""
