"""The formats that a schema may name for texts, as the API server reads them.

Formats that are not in the table are ignored, as Kubernetes ignores them.
Source: k8s.io/kube-openapi/pkg/validation/strfmt.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

from kube import names

_HEX = "[0-9a-fA-F]"
_UUID = re.compile(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?({_HEX}){_HEX}{{3}}-?({_HEX}){_HEX}{{3}}-?{_HEX}{{12}}")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION_PART = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_GO_DURATION = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_UNIT_PREFIXES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_CARD = re.compile(
    r"(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|(222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|6(?:011|5\d\d)\d{12}"
    r"|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}|6[27]\d{14})",
    re.ASCII,
)
_SSN = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}", re.ASCII)
_HEX_COLOR = re.compile(rf"#?({_HEX}{{3}}|{_HEX}{{6}})")
_BYTE_VALUE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_RGB = re.compile(rf"rgb\(\s*{_BYTE_VALUE}\s*,\s*{_BYTE_VALUE}\s*,\s*{_BYTE_VALUE}\s*\)", re.ASCII)
_MAC = re.compile(
    rf"{_HEX}{{2}}([:-]){_HEX}{{2}}(?:\1{_HEX}{{2}}){{4}}(?:(?:\1{_HEX}{{2}}){{2}}|(?:\1{_HEX}{{2}}){{14}})?"
    rf"|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}(?:\.{_HEX}{{4}})?(?:(?:\.{_HEX}{{4}}){{6}})?"
)
_OBJECT_ID = re.compile(rf"{_HEX}{{24}}")
_HOST_LABEL = re.compile(r"[^\W_](?:[^\W_]|-)*(?<!-)")
LONGEST = 1024  # characters; nothing that has one of the other formats is longer, and some rules are quadratic


def is_supported(name: str) -> bool:
    """Whether a format is checked."""
    return normalized(name) in _FORMATS


def fits(name: str, text: str) -> bool:
    """Whether a text has the format; a format that is not checked fits everything."""
    rule = _FORMATS.get(normalized(name))
    if rule is None:
        return True
    if len(text) > LONGEST and rule not in (_anything, _is_base64, _is_uri):
        return False
    try:
        return rule(text)
    except (ValueError, UnicodeError):
        return False


def normalized(name: str) -> str:
    """Return a format's name without dashes: `date-time` and `datetime` are one."""
    return name.replace("-", "")


def _anything(text: str) -> bool:
    return True


def _is_uri(text: str) -> bool:
    if not text or any(c <= " " or c == "\x7f" for c in text):
        return False
    if text.startswith("/"):
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return False
    urlsplit(text)
    return not rest.startswith("//") or "%" not in text or re.search(r"%(?![0-9a-fA-F]{2})", text) is None


def _is_email(text: str) -> bool:
    _name, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    return bool(at and local and domain) and " " not in domain


def _is_hostname(text: str) -> bool:
    if not text or len(text.encode()) > 255:
        return False
    labels = text.split(".")
    if len(labels) > 1 and len(labels[-1]) < 2:
        return False
    return all(len(label.encode()) <= 63 and _HOST_LABEL.fullmatch(label) for label in labels)


def _unpadded(text: str) -> str:
    return ".".join(part.lstrip("0") or part[:1] for part in text.split("."))


def _is_ipv4(text: str) -> bool:
    # Octets may have leading zeros, as Go allowed for long.
    ipaddress.IPv4Address(_unpadded(text))
    return True


def _is_ipv6(text: str) -> bool:
    return "%" not in text and bool(ipaddress.IPv6Address(text))


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal() or not bits.isascii() or len(bits) > 3:
        return False
    if ":" in address:
        return _is_ipv6(address) and int(bits) <= 128
    return _is_ipv4(address) and int(bits) <= 32


def _uuid(version: str, variants: str = "") -> Callable[[str], bool]:
    def rule(text: str) -> bool:
        match = _UUID.fullmatch(text)
        if match is None or (version and match[1] != version):
            return False
        return not variants or match[2].lower() in variants

    return rule


def _digits(text: str) -> str:
    return re.sub(r"[\s-]+", "", text)


def _is_isbn10(text: str) -> bool:
    code = _digits(text)
    if not re.fullmatch(r"\d{9}[\dX]", code, re.ASCII):
        return False
    return sum((i + 1) * (10 if c == "X" else int(c)) for i, c in enumerate(code)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    code = _digits(text)
    if not re.fullmatch(r"\d{13}", code, re.ASCII):
        return False
    return sum((3 if i % 2 else 1) * int(c) for i, c in enumerate(code)) % 10 == 0


def _is_card(text: str) -> bool:
    code = re.sub(r"[^0-9]+", "", text)
    if not _CARD.fullmatch(code):
        return False
    doubled = (int(c) * (2 if i % 2 else 1) for i, c in enumerate(reversed(code)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _is_base64(text: str) -> bool:
    return _BASE64.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None and bool(date.fromisoformat(text))


def _is_time(text: str) -> bool:
    day, t, rest = text.lower().partition("t")
    if not t or not _is_date(day):
        return False
    match = _TIME.fullmatch(rest)
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    if text and _GO_DURATION.fullmatch(text):
        return True
    return any(
        unit.lower() in _UNITS or unit.lower().startswith(_UNIT_PREFIXES) for _, unit in _DURATION_PART.findall(text)
    )


def _pattern(expression: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: expression.fullmatch(text) is not None


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(_OBJECT_ID),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _pattern(_MAC),
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "89ab"),
    "uuid5": _uuid("5", "89ab"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": _pattern(_SSN),
    "hexcolor": _pattern(_HEX_COLOR),
    "rgbcolor": _pattern(_RGB),
    "byte": _is_base64,
    "password": _anything,
    "date": _is_date,
    "datetime": _is_time,
    "duration": _is_duration,
    "k8sshortname": lambda text: names.dns_label(text) is None,
    "k8slongname": lambda text: names.dns_subdomain(text) is None,
}
