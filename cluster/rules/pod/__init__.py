"""Which pods are accepted and changed, and what is filled in in them and in pod templates."""
