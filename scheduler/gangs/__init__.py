"""What a pod group is to a cycle: a gang, its parts, who of it may be evicted, and how long it may wait."""
