"""A cluster with an API of its own behind the same pages: its mirror in the store, and changes as calls of its API.

Asking: `target` says which cluster, `connection` (the one module that imports
the official client) sends what `request` and `paths` describe, `discovery` says
which kinds there are, `server` holds this process's connection, `lookup` looks one
thing up.

Hearing: `kinds` is the table of what is mirrored, `reflection` has the rules,
`reflector` follows one kind, `recorder` writes, `mirror` is the program;
`standby` says which of several `up`s runs it.

Changing: `backend` with `creation`, `changing`, `deletion`, `preview` and
`calls`; `ways` says what may be changed at all.

Working there (`in_place`): a plan is written down (`outbox`, `encoding`), sent (`requests`,
`order`, `progress`, `verdicts`, `gangs`, and `sending` for the threads) and settled
(`carried`), by who leads (`lease`, `election`).

Rights of people who act as themselves: `authorizer` decides, `viewer` knows what one of them may do, `reviews`
asks the cluster, `access_rules` reads its answers.

Logs: `nodes` answers for them, `log_offsets` and `log_ends` have the rules, `log_reading` asks, `log_memory` remembers.

`freshness` says how old all this is. See docs/design/remote.md.
"""
