"""The pages of sweeps: values to fill in, what would be made of them, and the outcomes side by side."""
