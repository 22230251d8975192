"""The plugins of Volcano Jobs: what `spec.plugins` adds to a job and its pods."""
