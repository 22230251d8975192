"""What flows while a container runs: its log, exec, attach, and connections to its ports."""
