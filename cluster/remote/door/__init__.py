"""Changes that people and programs ask for, as calls of another cluster's API, and the rights that it gives them."""
