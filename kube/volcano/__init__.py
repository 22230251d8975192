"""What Volcano, and this product beside it, writes on jobs, pod groups, queues and HyperNodes, and how that is read."""
