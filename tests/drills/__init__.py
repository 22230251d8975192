"""Whole systems that are stopped, restarted, hung, joined by machines and driven through scenarios, for minutes: `make test-drills`."""
