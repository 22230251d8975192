"""The client that wants things: people who submit, command, change and delete, drawn by chance.

    client = Client(Random(seed))
    request = client.wish(picture)

What can be wanted is in `tests.simulation.wishes`, one small function each.
`setup()` is what there is before.
"""

from __future__ import annotations

from collections import deque

import msgspec

from tests.simulation.before import setup
from tests.simulation.desk import KINDS, Desk, Wish
from tests.simulation.request import ROLES, Picture, Request
from tests.simulation.wishes import load

__all__ = ["KINDS", "ROLES", "Client", "Picture", "Request", "Wish", "setup"]

REMEMBERED = 40  # requests that may be sent again
load()


class Client:
    """Everybody who wants something of the cluster.

    The same seed and the same pictures give the same requests. `weights` says
    how often kinds of wishes come, by their names in KINDS; kinds that it
    leaves out weigh what they weigh usually, and 0 means never. `faith` says
    how often people go on with the object that they thought of last, and
    `long` how many of their pods run for hours.
    """

    def __init__(self, random, weights=None, faith=0.0, long=0.03):
        unknown = sorted(set(weights or ()) - set(KINDS))
        if unknown:
            raise ValueError(f"There is no wish called {unknown[0]!r}; KINDS has their names.")
        self.random = random
        # In the order of the names, so that it does not matter which module was imported first.
        self.weights = {name: KINDS[name].weight for name in sorted(KINDS)} | dict(weights or {})
        self.faith = faith
        self.long = long
        self.named = 0
        self.sent = deque(maxlen=REMEMBERED)
        self.minds = {}

    def wish(self, picture):
        """Return the next thing that somebody wants."""
        return self.draw(picture)[1]

    def draw(self, picture):
        """Return the kind of the next wish, and its request."""
        weights = {name: KINDS[name].weight_now(picture, usual) for name, usual in self.weights.items()}
        left = {name: weight for name, weight in weights.items() if weight}
        while left:
            name = self.random.choices(list(left), list(left.values()))[0]
            request = self.make(name, picture)
            if request is not None:
                return name, request
            del left[name]
        raise LookupError("Nobody wants anything: no wish with a weight finds something to act on.")

    def make(self, name, picture):
        """Return a request of one kind, None when it finds nothing to act on."""
        kind = KINDS[name]
        made = kind.make(Desk(self.random, picture, self._name, self.sent, self.minds, self.faith, self.long))
        if made is None:
            return None
        request = _apart(made)
        if request.method == "POST" and kind.meant == "accepted":
            self.sent.append(request)
        return request

    def _name(self, word):
        self.named += 1
        return f"{word}{self.named}"


def _apart(request):
    """Return a request that shares nothing with the picture, which goes on changing."""
    return msgspec.json.decode(msgspec.json.encode(request), type=Request)
