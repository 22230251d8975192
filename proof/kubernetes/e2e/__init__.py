"""Volcano's own end-to-end suites, with these controllers, this scheduler and these webhooks in place of Volcano's."""
