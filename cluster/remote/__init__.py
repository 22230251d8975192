"""A cluster with an API of its own behind the same pages: its mirror in the store, and changes as calls of its API.

http            describes requests; `connection`, the one module that imports the official client, sends them
mirroring       says what the mirror becomes; `recorder` writes it, `mirror` is the program
leader_election says who works there
door            carries out what people ask for, and asks what they may; `backend` is all of it
dispatch        sends what controllers plan; `outbox` keeps it, `in_place` is the backend of those
logs            reads logs
webhooks        answers what the cluster's API server asks before it stores a job
freshness       says how old all this is

See docs/design/remote.md.
"""
