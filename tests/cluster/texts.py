"""Functions whose answers stand in golden files: a line is what one is given, behind the arrow is what it says."""

from __future__ import annotations

import yaml

from kube.errors import ApiError
from tests.cluster.objects import parsed, shown


def of_values(function, errors=ApiError):
    """Give a function the items of a line as YAML reads them; an error of this kind is an answer, too."""

    def says(line):
        try:
            return [shown(function(*yaml.safe_load(f"[{line}]")))]
        except errors as error:
            return [f"{type(error).__name__}: {error}"]

    return says


def of_objects(function):
    """Give a function the objects of a line, as tests/cluster/objects.py has them, each with its kind, with `|` between them."""
    return lambda line: [shown(function(*map(parsed, line.split(" | "))))]
