"""Sweeps: one job's YAML with placeholders and a table of values make many jobs."""
