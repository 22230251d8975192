"""Who works on another cluster: a Lease there among installations, and one of several `up`s on one database."""
