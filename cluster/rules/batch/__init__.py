"""Which Jobs of Kubernetes are accepted and changed."""
