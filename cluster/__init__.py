"""The cluster: its objects and their log, who may change them, and the controllers that every cluster has.

`store` holds, `api` is the door, `access` says who may, `rules` what, `runtime` runs whatever reads the log,
`controllers` are the built-in ones. `backend` is what all of it looks like from above.
"""
