"""Where the pages of each of several clusters are: below `/c/NAME/`, and the same page in another one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple


def prefix(name: str) -> str:
    """Return what the addresses of a cluster's pages begin with, without the slash before it."""
    return f"c/{name}/"


def counterpart(path: str, own: str, other: str, is_page: Callable[[str], bool]) -> str:
    """Return where the page at a path is in another cluster: the page itself, or the nearest list above it.

    own and other are the prefixes of the two clusters. is_page says whether a path of this cluster is a page
    that every cluster has: an object of one is not found in another.
    """
    root = f"/{own}"
    if not path.startswith(root):
        return f"/{other}"
    below = path.removeprefix(root)
    while below and not is_page(root + below):
        below = below.rstrip("/").rpartition("/")[0]
        below = f"{below}/" if below else ""
    return f"/{other}{below}"


class Route(NamedTuple):
    """What becomes of a request: handed on to the cluster of a name, or sent to another address; both "" for neither."""

    name: str = ""
    moved: str = ""


def route(path: str, names: Collection[str], home: str) -> Route:
    """Return what becomes of a request for a path, as the browser wrote it.

    What lies below no cluster is an address from before there were several: the first one's, `home`.
    """
    if not path.startswith("/c/"):
        return Route(moved=f"/{prefix(home)}{path.removeprefix('/')}")
    name, slash, _ = path.removeprefix("/c/").partition("/")
    if name not in names:
        return Route()
    return Route(name) if slash else Route(moved=f"/{prefix(name)}")
