"""Which subordinate users the pods of a namespace are: where root starts the cluster, each namespace has users of its own.

Stored in a file, so that files which a pod has left on a file system that maps no users are its namespace's later, too.
"""

from __future__ import annotations

from pathlib import Path

from node.shim.shim import read_json, write_json
from node.shim.users import RANGES


class UserRanges:
    """The number of each namespace's range."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ranges: dict[str, int] = {name: int(number) for name, number in read_json(str(file)).items()}

    def of(self, namespace: str) -> int:
        """Return a namespace's range, for good; OSError when a new one cannot be written down.

        With more namespaces than the machine has ranges some share one.
        """
        if namespace not in self._ranges:
            taken = set(self._ranges.values())
            free = next((number for number in range(RANGES) if number not in taken), len(self._ranges) % RANGES)
            write_json(str(self._file), self._ranges | {namespace: free}, sync=True)
            self._ranges[namespace] = free
        return self._ranges[namespace]
