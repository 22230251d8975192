"""What keeps a container from everything else: a root of its own, Landlock, system calls, capabilities."""
