"""The parts that pages share, and the pages that belong to neither jobs nor queues."""
