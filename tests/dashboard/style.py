"""Reading the style sheets and templates as tests need them."""

import json
import re

from django.conf import settings
from django.template import engines

from dashboard.parts import phases

COLOUR = re.compile(r"(--[\w-]+):\s*(?:light-dark\((#\w{6}), (#\w{6})\)|(#\w{6}));")


def tag(name, *arguments):
    """What a tag of `{% load ui %}` gives."""
    words = " ".join(json.dumps(each) for each in arguments)
    return engines["django"].from_string(f"{{% load ui %}}{{% {name} {words} %}}").render()


def tokens(path, theme):
    """The colours of tokens.css in one theme."""
    return {
        name: both or (light if theme == "light" else dark)
        for name, light, dark, both in COLOUR.findall(path.read_text())
    }


def contrast(one, other):
    """The contrast of two colours as WCAG 2 defines it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour):
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def icons_in_sprite():
    return set(json.loads((settings.BASE_DIR / "frontend/icons.json").read_text()))


def icons_used():
    """Names of icons in templates, in modules and in the table of looks."""
    used = {look.icon for look in [*phases.LOOKS.values(), phases.UNKNOWN]}
    for path in (settings.BASE_DIR / "templates").rglob("*.html"):
        text = path.read_text()
        used |= set(re.findall(r'{% icon "([\w-]+)"', text)) | set(re.findall(r'symbol="([\w-]+)"', text))
        used |= set(re.findall(r'{% nav "[\w:]+" "[\w ]+" "([\w-]+)"', text))
    for path in (settings.BASE_DIR / "frontend/modules").glob("*.js"):
        used |= set(re.findall(r'icon\("([\w-]+)"\)', path.read_text()))
    return used
