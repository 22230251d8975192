"""The pages of jobs and of what makes them: their views, and the parts that are refreshed when something changes."""
