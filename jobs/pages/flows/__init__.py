"""The pages of job flows and job templates."""
