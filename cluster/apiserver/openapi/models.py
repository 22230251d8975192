"""Kubernetes' own types as the installed client package describes them: fields, types and descriptions.

The package's model files are read as text: importing it costs seconds and tens
of megabytes, and only what is served is wanted. They lack what the facts below
add: whole numbers of 64 bits, quantities, moments with microseconds.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

_IMPORT = re.compile(r"^from kubernetes\.client\.models\.(\w+) import (\w+)$", re.MULTILINE)
_REMARK = re.compile(r"\s*# noqa: E501\s*$", re.MULTILINE)


class Field(NamedTuple):
    """One field of a model; type is the model's notation, such as `list[V1Container]`."""

    name: str
    type: str
    description: str
    required: bool


class UnreadableModelError(Exception):
    """The installed client package is written in a way that is not understood here."""


def exists(model: str) -> bool:
    """Say whether the client package has this model, such as `V1Pod`."""
    return model in _files()


def fields(model: str) -> list[Field]:
    """Return the fields of a model, in the order of their JSON names."""
    tree = ast.parse(_files()[model].read_text(encoding="utf-8"))
    body = next(node for node in tree.body if isinstance(node, ast.ClassDef)).body
    types, names = _mapping(model, body, "openapi_types"), _mapping(model, body, "attribute_map")
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    texts = {node.name: _description(node) for node in functions if _is_getter(node)}
    required = {node.name for node in functions if not _is_getter(node) and _refuses_none(node)}
    found = [
        Field(names[attribute], kind, texts.get(attribute, ""), attribute in required)
        for attribute, kind in types.items()
    ]
    return sorted(found)


@cache
def _files() -> dict[str, Path]:
    """Return the file of each model."""
    # The package of the models cannot be found without importing `kubernetes`, but `kubernetes` itself can.
    package = find_spec("kubernetes")
    if package is None or package.origin is None:
        return {}
    directory = Path(package.origin).parent / "client" / "models"
    text = (directory / "__init__.py").read_text(encoding="utf-8")
    return {model: directory / f"{module}.py" for module, model in _IMPORT.findall(text)}


def _mapping(model: str, body: list[ast.stmt], name: str) -> dict[str, str]:
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id == name:
            found: dict[str, str] = ast.literal_eval(node.value)
            return found
    raise UnreadableModelError(f"{model} of the package kubernetes has no {name}; install kubernetes 36.")


def _is_getter(node: ast.FunctionDef) -> bool:
    return isinstance(node.decorator_list[0], ast.Name) and node.decorator_list[0].id == "property"


def _refuses_none(node: ast.FunctionDef) -> bool:
    raised = [part for part in ast.walk(node) if isinstance(part, ast.Raise)]
    return any("must not be `None`" in ast.unparse(part) for part in raised)


def _description(node: ast.FunctionDef) -> str:
    """Return the text between the first line of a getter's docstring and what it returns."""
    text = ast.get_docstring(node) or ""
    _, _, rest = text.partition("\n\n")
    return _REMARK.sub("", rest.partition(":return:")[0]).strip()
