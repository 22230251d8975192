"""What an invariant is, and what is raised when one does not hold."""

from __future__ import annotations

from proof.invariants.picture import Picture, Step


class Broken(AssertionError):
    """An invariant does not hold: which one, at which revision, about which object, in words."""

    def __init__(self, invariant: str, revision: int, key: str, text: str) -> None:
        super().__init__(f"{invariant}: revision {revision}, {key}: {text}")
        self.invariant, self.revision, self.key, self.text = invariant, revision, key, text


class Invariant:
    """Something that must be true of every history.

    `take` is called with each step of the kinds that are named, after the
    picture of the cluster has taken it over; None names all kinds. `finish` is
    called where the log ends, `settle` when nothing moves any more.
    """

    name = ""
    meaning = ""  # one line
    kinds: tuple[str, ...] | None = ()

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    def take(self, step: Step) -> None:
        """Judge one step."""

    def finish(self) -> None:
        """Judge what waited for the next step, which does not come."""

    def settle(self, now: int) -> None:
        """Judge the cluster at rest; now is in epoch milliseconds."""

    def broken(self, key: str, text: str, revision: int | None = None) -> Broken:
        """Return the error that says that this invariant does not hold."""
        return Broken(self.name, self.picture.revision if revision is None else revision, key, text)
