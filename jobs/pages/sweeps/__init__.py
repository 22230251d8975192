"""The pages of sweeps: values to fill in, a preview of the jobs, and the outcomes side by side."""
