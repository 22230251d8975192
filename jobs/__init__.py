"""Volcano Jobs: `rules` accept them, `lifecycle` and `controller` carry them out, `editor` and `pages` show them."""
