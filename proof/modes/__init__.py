"""One behaviour, tried in each mode of the system: where our controllers write to the store, and where they work on another cluster.

A test that asks for the fixture `runner_mode` (tests/conftest.py) is run in each of them. In both it writes to the default
database what people and nodes do, and looks there what came of it. Embedded, the consumers that it runs (`runner`) work on
that database. In-place, it is the cluster's: its API server (`api_server`) answers, a mirror (`in_place`) in a database
of its own hears, and the consumers write down what they plan, send it, and see it confirmed. All of that is the product's
own code, in this process and without a socket, so a test costs milliseconds in either mode.

`tests/system` does the same with whole systems.
"""
