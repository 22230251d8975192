"""What the scheduler reads of objects, and what it keeps of each: one record an object, of pods that are alike one shape."""
