"""The pages of jobs and of what makes them: their views, and the parts that are drawn anew when something changes."""
