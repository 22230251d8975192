"""What each kind, page, action and reason of the product has, and what it lacks for which reason: `make scale`."""
