"""Checking an object against its schema, with Kubernetes' causes.

The rules, their order and their texts are those of
k8s.io/kube-openapi/pkg/validation/validate, down to how the best of several
alternatives is chosen: by the number of checks that it passed. The work is
bounded: an object that needs more than MAX_STEPS is refused.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from kube import errors, patterns
from kube.custom import formats
from kube.custom.nodes import Node
from kube.errors import MAX_CAUSES, Cause

MAX_STEPS = 200_000  # half a second; one for each value, so a large object takes a tenth
ALTERNATIVE = 20  # steps that an alternative counts for: what is wrong with it is written down as well

_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_LARGEST_EXACT = 2**53 - 1
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Missing:
    """Where there is no earlier value."""


MISSING: Any = _Missing()


class TooMuchError(Exception):
    """A check that was given up."""


class Run:
    """How much work is left for one check, or for several together."""

    __slots__ = ("remaining",)

    def __init__(self) -> None:
        self.remaining = MAX_STEPS

    def spend(self, steps: int = 1) -> None:
        self.remaining -= steps
        if self.remaining < 0:
            raise TooMuchError


def check(value: Any, node: Node, path: str = "", old: Any = MISSING, run: Run | None = None) -> list[Cause]:
    """Return what is wrong with a value.

    With `old`, the value that it replaces, what was wrong before and stayed
    the same is let through (CRD validation ratcheting).
    """
    causes: list[Cause] = []
    try:
        _check(value, node, path, causes, run or Run(), old)
    except (TooMuchError, RecursionError):
        text = "the object is too large or too deep for the alternatives of its schema"
        causes.append(errors.forbidden(path, text))
    return list(dict.fromkeys(causes))[:MAX_CAUSES]


def _check(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any = MISSING) -> int:
    """Add what is wrong to out; return how many checks passed."""
    run.spend()
    mark = len(out)
    if value is None:
        passed = _check_null(node, path, out)
    else:
        passed = _check_value(value, node, path, out, run, old)
    if len(out) > mark and old is not MISSING and _same(value, old):
        del out[mark:]
    return passed


def _check_null(node: Node, path: str, out: list[Cause]) -> int:
    refused = bool(node.types) and not node.nullable
    if refused:
        out.append(_type_cause(path, ",".join(node.types), "null"))
    if node.enum is not None:
        out.append(_enum_cause(path, None, node.enum))
    return int(not refused)


def _check_value(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    kind = type(value)
    # One for every group of rules that applies and one for the whole; some groups add their own.
    passed = 2
    if node.types or node.format:
        passed += 1 + _check_type(value, node, path, out)
    passed += 1 + _check_alternatives(value, node, path, out, run, old)
    if kind is str:
        passed += 1 + (1 if node.format else 0)
        _check_text(value, node, path, out, run)
    elif kind is int or kind is float:
        passed += 2
        _check_number(value, node, path, out)
    elif kind is list:
        passed += 1 + _check_items(value, node, path, out, run, old)
    if node.enum is not None and not _is_one_of(value, node.enum, run):
        out.append(_enum_cause(path, value, node.enum))
    if kind is dict:
        passed += 1 + _check_fields(value, node, path, out, run, old)
    return passed


def _check_type(value: Any, node: Node, path: str, out: list[Cause]) -> int:
    types = node.types
    kind = _TYPES.get(type(value), type(value).__name__)
    fits = kind in types or (kind == "integer" and "number" in types) or _is_whole(value, types)
    if node.format and not fits:
        if kind not in ("string", "array"):
            # Go's word for a number's type; it has none to put here for other kinds.
            out.append(_type_cause(path, node.format, {"integer": "int64", "number": "float64"}.get(kind, "")))
            return 0
        fits = "number" not in types and "integer" not in types
    if fits:
        return 1
    out.append(_type_cause(path, ",".join(types), kind))
    return 0


def _is_whole(value: Any, types: tuple[str, ...]) -> bool:
    return type(value) is float and "integer" in types and _is_integer(value)


def _is_integer(value: float) -> bool:
    if not math.isfinite(value) or abs(value) > _LARGEST_EXACT:
        return False
    return math.isclose(value, round(value), rel_tol=1e-9)


def _check_alternatives(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    """Check anyOf, oneOf, allOf and not."""
    passed = 1
    if node.any_of:
        passed += _check_any(value, node, path, out, run, old)
    if node.one_of:
        passed += _check_one(value, node, path, out, run, old)
    if node.all_of:
        passed += _check_all(value, node, path, out, run, old)
    if node.negated is not None:
        causes: list[Cause] = []
        _check(value, node.negated, path, causes, run)
        if not causes:
            out.append(_whole_cause(path, "must not validate the schema (not)"))
    return passed


def _check_any(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    best: tuple[int, list[Cause]] | None = None
    for alternative in node.any_of:
        causes: list[Cause] = []
        passed = _check_same(value, alternative, path, causes, run, old)
        if not causes:
            return passed
        if best is None or passed > best[0]:
            best = passed, causes
    out.append(_whole_cause(path, "must validate at least one schema (anyOf)"))
    return _add_best(best, out)


def _check_one(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    best: tuple[int, list[Cause]] | None = None
    first = valid = 0
    for alternative in node.one_of:
        causes: list[Cause] = []
        passed = _check_same(value, alternative, path, causes, run, old)
        if not causes:
            first = first if valid else passed
            valid += 1
            best = None
        elif not valid and (best is None or passed > best[0]):
            best = passed, causes
    if valid == 1:
        return first
    more = f"Found {valid} valid alternatives" if valid else "Found none valid"
    out.append(_whole_cause(path, f"must validate one and only one schema (oneOf). {more}"))
    return _add_best(best, out)


def _check_all(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    passed = valid = 0
    for part in node.all_of:
        mark = len(out)
        passed += _check_same(value, part, path, out, run, old)
        valid += len(out) == mark
    if valid != len(node.all_of):
        more = "" if valid else ". None validated"
        out.append(_whole_cause(path, f"must validate all the schemas (allOf){more}"))
    return passed


def _check_same(value: Any, node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    """Check the same value against another schema: what stayed the same is let through inside it only."""
    run.spend(ALTERNATIVE)
    if value is None:
        return _check_null(node, path, out)
    return _check_value(value, node, path, out, run, old)


def _add_best(best: tuple[int, list[Cause]] | None, out: list[Cause]) -> int:
    if best is None:
        return 0
    out += best[1]
    return best[0]


def _check_text(value: str, node: Node, path: str, out: list[Cause], run: Run) -> None:
    if node.max_length is not None and len(value) > node.max_length:
        out.append(errors.too_long(path, node.max_length))
    elif node.min_length is not None and len(value) < node.min_length:
        _refuse(out, path, value, f"should be at least {node.min_length} chars long")
    elif node.pattern:
        run.spend(patterns.cost(node.pattern, value))
        if not patterns.matches(node.pattern, value):
            _refuse(out, path, value, f"should match '{node.pattern}'")
    if node.format and not formats.fits(node.format, value):
        out.append(_type_cause(path, node.format, value))


def _check_number(value: float, node: Node, path: str, out: list[Cause]) -> None:
    if node.multiple_of is not None:
        _check_multiple(value, node.multiple_of, path, out)
    if node.minimum is not None:
        bound = _bound(node.minimum, value)
        if value < bound or (node.exclusive_minimum and value == bound):
            than = "greater than" if node.exclusive_minimum else "greater than or equal to"
            _refuse(out, path, value, f"should be {than} {go_number(bound)}")
    if node.maximum is not None:
        bound = _bound(node.maximum, value)
        if value > bound or (node.exclusive_maximum and value == bound):
            than = "less than" if node.exclusive_maximum else "less than or equal to"
            _refuse(out, path, value, f"should be {than} {go_number(bound)}")


def _bound(bound: float, value: float) -> float:
    """A whole number is compared with a whole number, as in Go."""
    return int(bound) if type(value) is int and math.isfinite(bound) else float(bound)


def _check_multiple(value: float, factor: float, path: str, out: list[Cause]) -> None:
    if type(value) is int:
        step = int(factor)
        if step <= 0:
            detail = f"factor MultipleOf declared for {path} must be positive: {go_number(step)}"
            out.append(errors.invalid(path, step, detail))
        elif value % step:
            _refuse(out, path, value, f"should be a multiple of {step}")
        return
    if factor <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {go_number(float(factor))}"
        out.append(errors.invalid(path, factor, detail))
    elif not _is_integer(1 / factor * value if factor < 1 else value / factor):
        _refuse(out, path, value, f"should be a multiple of {go_number(float(factor))}")


def _check_items(value: list[Any], node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    passed = 1
    if node.items is not None:
        before = _before(node, old)
        for index, item in enumerate(value):
            earlier = MISSING if before is None else before.get(_map_key(node, item), MISSING)
            passed += _check(item, node.items, f"{path}[{index}]", out, run, earlier)
            if len(out) > MAX_CAUSES:
                break
    if node.min_items is not None and len(value) < node.min_items:
        _refuse(out, path, len(value), f"should have at least {node.min_items} items")
    if node.max_items is not None and len(value) > node.max_items:
        out.append(errors.too_many(path, len(value), node.max_items))
    return passed


def _before(node: Node, old: Any) -> dict[bytes, Any] | None:
    """Return the earlier items of a list that is a map, by their keys."""
    if node.list_type != "map" or not isinstance(old, list):
        return None
    return {_map_key(node, item): item for item in old}


def _map_key(node: Node, item: Any) -> bytes:
    return _encode([item.get(key) for key in node.map_keys]) if isinstance(item, dict) else b""


def _check_fields(fields: dict[str, Any], node: Node, path: str, out: list[Cause], run: Run, old: Any) -> int:
    passed = 0
    count = len(fields)
    if node.min_properties is not None and count < node.min_properties:
        _refuse(out, path, count, f"should have at least {node.min_properties} properties")
    if node.max_properties is not None and count > node.max_properties:
        out.append(errors.too_many(path, count, node.max_properties))
    for key, item in fields.items():
        inner = node.child(key)
        if inner is not None:
            earlier = old.get(key, MISSING) if isinstance(old, dict) else MISSING
            passed += _check(item, inner, _join(path, key), out, run, earlier)
            if len(out) > MAX_CAUSES:
                break
        elif node.additional is False and key not in node.properties:
            out.append(errors.invalid(path, key, f"{path}.{key} in body is a forbidden property"))
    out += (errors.required(_join(path, key)) for key in node.required if key not in fields)
    return passed


def _is_one_of(value: Any, allowed: list[Any], run: Run) -> bool:
    run.spend(len(allowed) // 8)
    is_number = type(value) in (int, float)
    return any(_same(value, item) or (is_number and type(item) in (int, float) and value == item) for item in allowed)


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1 and true are not."""
    if type(one) is not type(other) or one != other:
        return False
    return type(one) not in (dict, list) or _encode(one) == _encode(other)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _refuse(out: list[Cause], path: str, value: Any, detail: str) -> None:
    text = f"{path} in body {detail}"
    if type(value) is float:
        # Go writes numbers of its own way.
        out.append(Cause("FieldValueInvalid", f"Invalid value: {go_number(value)}: {text}", path))
    else:
        out.append(errors.invalid(path, value, text))


def _type_cause(path: str, wanted: str, actual: str) -> Cause:
    detail = f"{path} in body must be of type {wanted}: {errors.quoted(actual)}"
    return errors.wrong_type(path, actual, detail)


def _whole_cause(path: str, detail: str) -> Cause:
    # Upstream names no field for what concerns a whole value; the text does.
    return errors.invalid("", "", f'"{path}" {detail}')


def _enum_cause(path: str, value: Any, allowed: list[Any]) -> Cause:
    texts = [item if isinstance(item, str) else _encode(item).decode() for item in allowed]
    return errors.not_supported(path, value, texts)


def go_number(value: float) -> str:
    """Write a number as Go's %v does: 1.5, 1e+06, 3."""
    if type(value) is int:
        return str(value)
    if not math.isfinite(value):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    digits, _, exponent = f"{value!r}".partition("e")
    mantissa, power = _scientific(digits, int(exponent or 0))
    if power < -4 or power >= 6:
        return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    plain = f"{value:.20f}".rstrip("0").rstrip(".") if exponent else digits.removesuffix(".0")
    return plain or "0"


def _scientific(digits: str, exponent: int) -> tuple[str, int]:
    sign = "-" if digits.startswith("-") else ""
    whole, _, part = digits.lstrip("-").partition(".")
    part = "" if part == "0" else part
    power = exponent + len(whole) - 1
    figures = (whole + part).lstrip("0")
    if whole == "0":
        power = exponent - 1 - (len(part) - len(part.lstrip("0")))
    figures = figures.rstrip("0") or "0"
    return sign + figures[0] + (f".{figures[1:]}" if len(figures) > 1 else ""), power if figures != "0" else 0
