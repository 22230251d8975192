"""Requests to another cluster's API server: where it is, what is sent, how its answers are read."""
