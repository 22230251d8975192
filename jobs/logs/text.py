"""What containers printed, as text that can be shown."""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# What a terminal would act upon is shown as a picture of it.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}


def safe(data: bytes) -> str:
    """Return output as text that does nothing: no colours, no control characters, no broken encodings."""
    return _COLOURS.sub("", data.decode(errors="replace")).translate(_PICTURES)
