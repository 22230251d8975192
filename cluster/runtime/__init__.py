"""What runs the readers of the log: consumers and their registry, followers in an event loop, and the nudges that wake them."""
