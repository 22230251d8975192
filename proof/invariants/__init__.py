"""What must be true of every history of the cluster, judged by its log alone.

    judge = Judge()
    for change in changes:
        judge.take(change)     # Broken: which invariant, at which revision, about which object
    judge.settle(now)          # and what must hold once nothing moves any more

The rules are written down here once more, from their sources, and never
imported from the code that they judge: what both got wrong together would
look right. Where a rule is weaker than it sounds, its docstring says why.
"""

from __future__ import annotations

from proof.invariants.invariant import Broken, Invariant
from proof.invariants.judge import INVARIANTS, LAG_MS, Judge, check

__all__ = ["INVARIANTS", "LAG_MS", "Broken", "Invariant", "Judge", "check"]
