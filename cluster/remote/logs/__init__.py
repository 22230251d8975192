"""Logs of containers on another cluster's nodes: offsets that last, what is remembered, how they are read."""
