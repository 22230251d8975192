"""The client that wants things: people who submit, command, change and delete, drawn by chance.

    client = Client(Random(seed))
    request = client.wish(picture)

What can be wanted is in `proof.simulation.people.wishes`, one small function each.
`setup()` is what there is before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from random import Random

import msgspec

from proof.simulation.people.before import setup
from proof.simulation.people.desk import KINDS, Desk, Habits, Wish
from proof.simulation.people.request import ROLES, Picture, Request
from proof.simulation.people.wishes import load

__all__ = ["KINDS", "ROLES", "Client", "Habits", "Picture", "Request", "Wish", "setup"]

REMEMBERED = 40  # requests that may be sent again
load()


class Client:
    """Everybody who wants something of the cluster.

    The same seed and the same pictures give the same requests. `weights` says
    how often kinds of wishes come, by their names in KINDS; kinds that it
    leaves out weigh what they weigh usually, and 0 means never. `habits` say
    which objects they take, and how long their work is.
    """

    def __init__(
        self, random: Random, weights: Mapping[str, float] | None = None, habits: Habits | None = None
    ) -> None:
        unknown = sorted(set(weights or ()) - set(KINDS))
        if unknown:
            raise ValueError(f"There is no wish called {unknown[0]!r}; KINDS has their names.")
        self.random = random
        # In the order of the names, so that it does not matter which module was imported first.
        self.weights = {name: KINDS[name].weight for name in sorted(KINDS)} | dict(weights or {})
        self.habits = habits or Habits()
        self.named = 0
        self.sent: deque[Request] = deque(maxlen=REMEMBERED)
        self.minds: dict[str, str] = {}

    def wish(self, picture: Picture) -> Request:
        """Return the next thing that somebody wants."""
        return self.draw(picture)[1]

    def maker(self, deletion: Request) -> Request | None:
        """Return the request that made what a request deletes, None for other requests and what nobody made lately."""
        if deletion.method != "DELETE":
            return None
        collection, _, name = deletion.path.rpartition("/")
        requests = (each for each in reversed(self.sent) if each.path == collection)
        return next((each for each in requests if each.body["metadata"].get("name") == name), None)

    def collide(self, picture: Picture) -> Request:
        """Return a thing that somebody wants of what has just changed, of work that is there if that is possible."""
        usual = {name: 0 if KINDS[name].submits else weight for name, weight in self.weights.items()}
        try:
            return self.draw(picture, usual, self.habits._replace(fresh=1.0))[1]
        except LookupError:
            return self.wish(picture)

    def draw(
        self, picture: Picture, usual: Mapping[str, float] | None = None, habits: Habits | None = None
    ) -> tuple[str, Request]:
        """Return the kind of the next wish, and its request."""
        weights = {name: KINDS[name].weight_now(picture, of) for name, of in (usual or self.weights).items()}
        left = {name: weight for name, weight in weights.items() if weight}
        while left:
            name = self.random.choices(list(left), list(left.values()))[0]
            request = self.make(name, picture, habits)
            if request is not None:
                return name, request
            del left[name]
        raise LookupError("Nobody wants anything: no wish with a weight finds something to act on.")

    def make(self, name: str, picture: Picture, habits: Habits | None = None) -> Request | None:
        """Return a request of one kind, None when it finds nothing to act on."""
        kind = KINDS[name]
        made = kind.make(Desk(self.random, picture, self._name, self.sent, self.minds, habits or self.habits))
        if made is None:
            return None
        request = _apart(made)
        if request.method == "POST" and kind.meant == "accepted":
            self.sent.append(request)
        return request

    def _name(self, word: str) -> str:
        self.named += 1
        return f"{word}{self.named}"


def _apart(request: Request) -> Request:
    """Return a request that shares nothing with the picture, which goes on changing."""
    return msgspec.json.decode(msgspec.json.encode(request), type=Request)
