"""The process between the agent and a container: it outlives the agent and never loses an exit code.

One small program, the *spawner*, is started by the agent with a clean
environment and imports nothing but the standard library. It forks one *shim*
for each attempt to run a container. So a shim costs about one megabyte of its
own, holds none of the agent's secrets, sockets or database files, and starts
in a few milliseconds.

The files of an attempt, in ``node/pods/<uid>/<container>/<attempt>/``:

* ``claim``        the shim's process id and start ticks, linked into place and synced before the command may
  start: whoever is second is refused, so an attempt runs at most once
* ``started.json`` the command's process id, start ticks and time
* ``stop.json``    written by the agent: why and how fast to stop
* ``status.json``  written atomically at the end: exit code, signal, reason, times
* ``log.<offset>`` the output in the CRI log format, in segments named by their first byte's offset
"""
