"""What the scheduler reads of objects, and what it keeps: one record per object, and one shape for pods that are alike."""
