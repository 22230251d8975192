"""The link between the server and a node on another machine: what the server asks of it (docs/design/node.md, "A second machine").

The node's agent dials, as it may be behind a router that lets nobody in, and the server sends requests over that one WebSocket.

* `frames`, `flow`: the messages, and how many bytes may be on their way; pure.
* `wire`: many conversations over one link, on either side.
* `dialer`, `request_handler`: the node's side, in the agent's process.
* `holder`: the server's side, in the process of the API server that the node has dialled; `presence` and `figures` are what it
  leaves on the disk for the other processes.
* `linked_node`: the requests of any process of the server, by way of the holder.
"""
