"""What must be true while a world goes on, beside the invariants of its log."""
