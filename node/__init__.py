"""The nodes of the embedded cluster: this machine's agent and its shims, and simulated nodes.

What the cluster asks of a node goes through `link.local_nodes` (`cluster.backend.Nodes`).
"""
