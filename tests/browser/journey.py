"""What somebody does at a window, and what is then seen, a line of text after the other."""

import re

from playwright.sync_api import expect

from proof.harness.waiting import until
from proof.pictures.world import yaml_of

ROLES = re.compile(
    "alert|button|combobox|dialog|group|heading|link|listbox|navigation|option|region|status|table|textbox"
)
TO_A_THING = ("click", "check", "uncheck", "focus")
SAYS = "[data-part=says]:not([data-checking])"
WAYS = {": ": "to_contain_text", " = ": "to_have_text", " without ": "not_to_contain_text", " holds ": "to_have_value"}
SEEN = re.compile(r"(.+?)(: | = | without | × | holds | has | is (?=(?:not )?\w+$))(.*)")


class Window:
    """Somebody at a window of a browser.

        Window(page).goes('''
            open /jobs/default/demo/ → live; #job-head: Running
            click button Suspend; click dialog >> button Suspend → #job-head: Aborted; #job-runs is hidden
        ''')

    Before an arrow stands what is done, each a method with its words; behind it what is waited for (`sees`). A thing is
    named by a role; as `field` by its label, with what stands `around` it; as `text`; all of these by the whole name if
    it is in quotes. Anything else is a selector of Playwright, whose `>>` stands between one thing and another in it.
    """

    def __init__(self, page):
        self.page = page

    def goes(self, text):
        for line in filter(None, map(str.strip, text.splitlines())):
            steps, _, seen = line.partition("→")
            for step in filter(None, map(str.strip, steps.split("; "))):
                verb, _, rest = step.partition(" ")
                getattr(self.find(rest), verb)() if verb in TO_A_THING else getattr(self, verb)(rest)
            for each in filter(None, map(str.strip, seen.split("; "))):
                self.sees(each)

    def find(self, thing):
        found = self.page
        for part in thing.split(" >> "):
            kind, _, name = part.partition(" ")
            named = {"exact": name.startswith('"')}
            if ROLES.fullmatch(kind):
                found = found.get_by_role(kind, name=name.strip('"') or None, **named)
            elif kind == "text":
                found = found.get_by_text(name.strip('"'), **named)
            elif kind == "field":
                found = found.get_by_label(name.strip('"'), **named)
            elif kind == "around":
                found = found.locator(".field", has=self.page.get_by_label(name.strip('"'), **named))
            else:
                found = found.locator(part)
        return found

    # ---- what is done

    def open(self, address):
        self.page.goto(address)

    def back(self, _):
        self.page.go_back()

    def reload(self, _):
        self.page.reload()

    def press(self, keys):
        for key in keys.split():
            self.page.keyboard.press(key)

    def type(self, words):
        self.page.keyboard.type(words)

    def fill(self, words):
        thing, _, value = f"{words} ".partition(" = ")
        self.find(thing).fill(value.strip())

    def choose(self, words):
        thing, _, value = f"{words} ".partition(" = ")
        self.find(thing).select_option(value.strip())

    # ---- what is seen

    def sees(self, words):
        """Wait until it is so: where the page is, what the editor judges or has, how a thing is or what it says."""
        thing, how, value = SEEN.fullmatch(words).groups() if SEEN.fullmatch(words) else (words, "", "")
        if words.startswith("at "):
            self.page.wait_for_url(words.removeprefix("at "))
        elif words == "live":
            expect(self.page.locator("#live")).to_have_attribute("data-state", "live")
        elif words in ("accepted", "refused"):
            expect(self.page.locator(SAYS)).to_have_attribute("data-state", words)
        elif thing == "yaml":
            until(lambda: (value in yaml_of(self.page)) == (how == ": "), what=words)
        elif how == " is ":
            getattr(
                expect(self.find(thing)), f"not_to_be_{value[4:]}" if value.startswith("not ") else f"to_be_{value}"
            )()
        elif how == " has ":
            expect(self.find(thing)).to_have_attribute(*value.split(" ", 1))
        elif how == " × ":
            expect(self.find(thing)).to_have_count(int(value))
        else:
            getattr(expect(self.find(thing)), WAYS[how])(value)


def stays(page):
    """Mark the page; `unchanged` then tells that it was never loaded again."""
    page.evaluate("window.sameDocument = true")


def unchanged(page):
    return page.evaluate("window.sameDocument === true")
