"""Another cluster behind the pages, each with systems of its own: `make test-clusters`."""
