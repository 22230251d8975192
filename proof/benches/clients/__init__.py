"""Clients in processes of their own, which benchmarks start."""
