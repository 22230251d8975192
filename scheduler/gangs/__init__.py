"""What a pod group is to a cycle: a gang, its parts, which of its pods may be evicted, and how long it may wait."""
