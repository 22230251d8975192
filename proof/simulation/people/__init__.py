"""Who wants things of the world and how: requests, wishes drawn by chance, and what a client knows of the cluster."""
