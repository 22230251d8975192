"""The node side of the cluster: this machine's agent, and simulated nodes."""
