"""Pages of a list: their rows, and the pages before and after."""

from __future__ import annotations

from dataclasses import dataclass

SIZES = (25, 50, 100, 200)
DEFAULT_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list; a requested number beyond the last page means the last page."""

    requested: int
    size: int
    total: int

    @property
    def last(self) -> int:
        """The last page's number; an empty list has one empty page."""
        return max(1, -(-self.total // self.size))

    @property
    def number(self) -> int:
        return min(max(self.requested, 1), self.last)

    @property
    def offset(self) -> int:
        return (self.number - 1) * self.size

    @property
    def span(self) -> dict[str, int]:
        """The arguments of `store.find` for this page."""
        return {"total": self.total, "limit": self.size, "offset": self.offset}

    @property
    def first_row(self) -> int:
        return self.offset + 1 if self.total else 0

    @property
    def last_row(self) -> int:
        return min(self.offset + self.size, self.total)

    @property
    def previous(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def next(self) -> int | None:
        return self.number + 1 if self.number < self.last else None
