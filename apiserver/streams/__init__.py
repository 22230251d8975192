"""What flows while a container runs: its log, exec and attach."""
