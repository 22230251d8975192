"""The nodes of the embedded cluster: this machine's agent and its shims, and simulated nodes.

What the cluster asks of a node goes through `local_nodes` (`cluster.backend.Nodes`).
"""
