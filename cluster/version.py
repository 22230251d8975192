"""The version of this program, which the build reads as well."""

from __future__ import annotations

import re

VERSION = "0.2.0"


def is_newer(one: str, other: str) -> bool:
    """Say whether one version comes after another; what comes behind the numbers, as in 1.2.0rc1, counts for nothing."""
    return _numbers(one) > _numbers(other)


def _numbers(version: str) -> list[int]:
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(each) for each in match[0].split(".")] if match else []
    while numbers and not numbers[-1]:  # 1.2 is 1.2.0
        numbers.pop()
    return numbers
