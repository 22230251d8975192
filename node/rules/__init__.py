"""What a node decides without touching anything: the life of a pod, devices, probes, users, images' names."""
