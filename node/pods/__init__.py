"""What the agent reads of pods and their cluster, and what it says about them: the life of a pod, its environment, events."""
