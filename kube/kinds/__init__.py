"""The kinds that the cluster stores, as typed views of their JSON."""
