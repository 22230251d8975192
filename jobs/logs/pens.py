"""How terminal colours and styles (SGR) are shown: by the pages' hues, which have contrast in both themes.

Each of 16, 256 or 16 million colours is shown as the nearest hue. White and black text has the plain text colour, since
either would be invisible in one of the themes.
"""

from __future__ import annotations

import colorsys
import re
from functools import lru_cache
from typing import NamedTuple

PLAIN, GREY = "", "grey"
_OF_16 = (PLAIN, "red", "green", "amber", "blue", "plum", "teal", PLAIN)
_BRIGHT_OF_16 = (GREY, "red", "green", "yellow", "blue", "pink", "teal", PLAIN)
# Each hue with the largest angle on the colour wheel that it is used for.
_WHEEL = (
    (15, "red"), (38, "orange"), (50, "amber"), (70, "yellow"), (155, "green"), (195, "teal"),
    (255, "blue"), (285, "violet"), (310, "plum"), (345, "pink"), (360, "red"),
)  # fmt: skip
_ON = {1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "inverse", 9: "struck", 21: "underline"}
_OFF = {22: ("bold", "faint"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("struck",)}
_FOREGROUND, _BACKGROUND = 38, 48
_MOST = 64  # parameters of a sequence that are read
_NUMBER = re.compile(r"[0-9]{1,5}")


class Pen(NamedTuple):
    """How text is drawn; `link` is the address of a terminal hyperlink, "" for none."""

    ink: str = PLAIN  # a hue
    ground: str = PLAIN  # a hue; PLAIN is none
    styles: frozenset[str] = frozenset()
    link: str = ""

    @property
    def classes(self) -> str:
        """The CSS classes for it."""
        hues = [f"ink-{self.ink}"] * (self.ink != PLAIN) + [f"ground-{self.ground}"] * (self.ground != PLAIN)
        return " ".join(f"log-{each}" for each in (*hues, *sorted(self.styles)))


@lru_cache(1024)
def changed(pen: Pen, parameters: str) -> Pen:
    """Return the pen after the parameters of an SGR sequence: `1;31`, `38;5;208`, `38:2::255:0:0`; "" resets it."""
    # A number that is left out, also between colons, is 0.
    groups = [
        [int(number) if _NUMBER.fullmatch(number) else 0 for number in each.split(":")]
        for each in parameters.split(";")[:_MOST]
    ]
    at = 0
    while at < len(groups):
        code, *details = groups[at]
        at += 1
        if code in (_FOREGROUND, _BACKGROUND):
            if not details:
                details = [number for group in groups[at : at + 4] for number in group[:1]]
                at += {5: 2, 2: 4}.get(details[0], 1) if details else 0
            elif details[0] == 2 and len(details) > 4:
                del details[1]  # the colour space, which only this spelling has
            hue, is_ground = PLAIN, code == _BACKGROUND
            match details:
                case [5, number, *_]:
                    hue = _hue(min(number, 255), is_ground=is_ground)
                case [2, red, green, blue, *_]:
                    hue = _nearest((red, green, blue), is_ground=is_ground)
            pen = pen._replace(ink=hue) if code == _FOREGROUND else pen._replace(ground=hue)
        else:
            pen = _styled(pen, code, is_off=details[:1] == [0])
    return pen


def _styled(pen: Pen, code: int, *, is_off: bool) -> Pen:
    if code == 0:
        return Pen(link=pen.link)
    if code in _ON:
        name = {_ON[code]}
        return pen._replace(styles=pen.styles - name if is_off else pen.styles | name)
    if code in _OFF:
        return pen._replace(styles=pen.styles.difference(_OFF[code]))
    if 30 <= code <= 37 or 90 <= code <= 97:
        return pen._replace(ink=_hue(code - 30 if code < 90 else code - 82, is_ground=False))
    if 40 <= code <= 47 or 100 <= code <= 107:
        return pen._replace(ground=_hue(code - 40 if code < 100 else code - 92, is_ground=True))
    if code == 39:
        return pen._replace(ink=PLAIN)
    return pen._replace(ground=PLAIN) if code == 49 else pen


def _hue(number: int, *, is_ground: bool) -> str:
    """Return the hue of one of the 256 colours: 16 named ones, a cube with six levels per channel, and 24 greys."""
    if number < 16:
        hue = (*_OF_16, *_BRIGHT_OF_16)[number]
        return hue or (GREY if is_ground else PLAIN)
    if number >= 232:
        return _nearest((8 + 10 * (number - 232),) * 3, is_ground=is_ground)
    cube = number - 16
    levels = (cube // 36, cube // 6 % 6, cube % 6)
    red, green, blue = (55 + 40 * level if level else 0 for level in levels)
    return _nearest((red, green, blue), is_ground=is_ground)


def _nearest(colour: tuple[int, int, int], *, is_ground: bool) -> str:
    hue, saturation, value = colorsys.rgb_to_hsv(*(min(each, 255) / 255 for each in colour))
    if saturation < 0.2 or value < 0.2:
        is_text = value < 0.3 or value > 0.8
        return PLAIN if is_text and not is_ground else GREY
    angle = hue * 360
    name = next(name for end, name in _WHEEL if angle <= end)
    return "brown" if name == "orange" and value < 0.7 else name
