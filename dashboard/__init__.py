"""What every page shares, and the pages that belong to neither jobs nor queues."""
