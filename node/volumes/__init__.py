"""What pods have on disk: volumes, claims, their own storage, and when it goes."""
