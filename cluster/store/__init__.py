"""Objects and the log of their changes. `store` is the process-wide Store on the default database."""

from __future__ import annotations

from cluster.store.store import Store as Store
from cluster.store.store import store as store
from cluster.store.types import AllBut as AllBut
from cluster.store.types import Change as Change
from cluster.store.types import Single as Single
from cluster.store.types import Stored as Stored
from cluster.writes import Create as Create
from cluster.writes import Delete as Delete
from cluster.writes import Group as Group
from cluster.writes import Mirror as Mirror
from cluster.writes import Patch as Patch
from cluster.writes import Update as Update
from cluster.writes import Write as Write
