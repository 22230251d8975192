"""The pages that belong to neither jobs nor queues."""
