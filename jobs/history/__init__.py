"""What is known of jobs beyond their objects: phases, runs, pods and events, folded from the log."""
