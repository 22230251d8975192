"""The pages of job templates with parameters."""
