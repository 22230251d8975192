"""What people and machines do to accounts, roles, tokens and logins, a line a deed: the stories people.txt and logins.txt.

root make bob groups=[team]              who does it: an account, `console`, a service account `team/robot`, or who has a token t1
console issue bob seconds=600 → t1       tokens and links are called by the order in which they are made; `t1 is` says whose it is
t1 join lab by=agent-2                   a machine, by default agent-1, becomes a node
store pod team/thing; remove …           what tokens are bound to, as in tests/cluster/story.py
after 60                                 time passes
ben get /login/ as=person ? Log in       a browser asks for a page, and whether the answer says something
Behind the arrow is what came of it, in brackets what the audit has of it.
"""

import re

import yaml
from django.contrib.auth.models import User
from django.test import Client

from cluster import access
from cluster.access import accounts, identities, joining, logins, tokens
from cluster.access.tokens import DAY_S, Bound
from cluster.claims import Person
from cluster.models import AuditEntry
from kube.errors import ApiError
from kube.meta import timestamp
from kube.resources import by_id
from tests.cluster.objects import as_yaml
from tests.cluster.story import Story

PLAYED = ("store", "change", "remove", "after")
PERSON = {"HTTP_SEC_FETCH_MODE": "navigate", "HTTP_SEC_FETCH_DEST": "document", "HTTP_SEC_FETCH_SITE": "none"}
HEADERS = {
    "": {}, "person": PERSON,
    "prerender": {**PERSON, "HTTP_SEC_PURPOSE": "prefetch;prerender"},
    "prefetch": {**PERSON, "HTTP_PURPOSE": "prefetch"},
    "another-site": {**PERSON, "HTTP_SEC_FETCH_SITE": "cross-site"},
    "picture": {**PERSON, "HTTP_SEC_FETCH_MODE": "no-cors"},
    "frame": {**PERSON, "HTTP_SEC_FETCH_DEST": "iframe"},
}  # fmt: skip


class People(Story):
    """`settings` are those of Django, `clock` one that is moved."""

    def __init__(self, clock, settings):
        super().__init__(clock)
        self.secrets, self.browsers, self.rows, self.settings, self.home = {}, {}, 0, settings, settings.DATA
        actor, user, add_secret, whom = self.actor, accounts.find_user, self.remember, self.whom
        self.deeds = {
            "make": lambda who, name, **fields: accounts.create_user(actor(who), name, **fields),
            "password": lambda who, name, new, revoke=False: accounts.set_password(actor(who), user(name), new, revoke=revoke),
            "knows": lambda who, password: user(who).check_password(password),
            "activate": lambda who, name: accounts.set_active(actor(who), user(name), active=True),
            "deactivate": lambda who, name: accounts.set_active(actor(who), user(name), active=False),
            "drop": lambda who, name: user(name).delete(),
            "groups": lambda who, name, *groups: accounts.set_groups(actor(who), user(name), groups),
            "bind": lambda who, role, namespace, **of: accounts.bind_role(actor(who), role, namespace, **whom(**of)),
            "unbind": lambda who, place, **of: accounts.unbind_role(actor(who), place, **whom(**of)),
            "holds": lambda who: {place: str(role) for place, role in access.grants(actor(who)).roles.items()},
            "may": lambda who, verb, kind, place="": access.allowed(actor(who), verb, by_id(kind), place),
            "set": lambda who, **values: [setattr(settings, *each) for each in values.items()],
            "login": lambda who, name, subject, *groups, at="https://p": identities.log_in(Person(at, subject, name, groups), "::1").username,
            "issue": lambda who, whose, **options: add_secret("t", self.issued(who, whose, **options)),
            "revoke": lambda who, token: tokens.revoke(actor(who), self.secrets[token].row.pk),
            "invite": lambda who, node=joining.ANY, hours=1: add_secret("t", joining.invite(actor(who), node, hours * 3600)),
            "since": lambda who, node: timestamp(joining.since(node)) if joining.since(node) else "never",
            "link": lambda who, name: add_secret("l", logins.login_link("http://h", user(name)).removeprefix("http://h")),
            "look": lambda link: logins.check_link(self.secrets[link].split("/")[2]).username,
            "claim": lambda link: logins.claim(self.secrets[link].split("/")[2], "::1").username,
            "succeed": lambda name, address="10.0.0.1": logins.attempt(name, address, {}).succeeded(user(name)),
            "get": lambda who, path, **fields: self.ask(who, "get", path, fields),
            "post": lambda who, path, **fields: self.ask(who, "post", path, fields),
        }  # fmt: skip

    def tell(self, line):
        if line.split()[0] in PLAYED:
            return super().tell(line)
        line, _, text = line.partition(" ? ")
        who, verb, *words = line.split()
        options = {name: yaml.safe_load(value) for name, value in (word.split("=", 1) for word in words if "=" in word)}
        given, do = [word.strip("'") for word in words if "=" not in word], self.deeds.get(verb)
        try:
            found = (do or getattr(self, f"{verb}_"))(who, *given, **options)
        except ApiError as error:
            found = f"{type(error).__name__}: {error.message}"
        outcome = as_yaml(found) if isinstance(found, str | int | dict) else "done"
        if text:
            outcome += ", says so" if text in self.browsers[who].said else ", does not say so"
        rows = AuditEntry.objects.filter(pk__gt=self.rows).order_by("pk")
        self.rows = max([self.rows, *(row.pk for row in rows)])
        audit = "; ".join(self.row(row, row.actor.removeprefix("system:") not in (who, "console")) for row in rows)
        return [re.sub(r"(?<=bootstrap:)\d+", "N", f"{outcome} ({audit})" if audit else outcome)]

    def row(self, row, is_by_another):
        """Return what the audit has of a deed, and by whom where that is not who did it."""
        changes = ", ".join(f"{each['path']} {each['old']} → {each['new']}" for each in row.changes or ())
        return " ".join(filter(None, [row.actor * is_by_another, row.verb, row.name, row.message, changes]))

    def after(self, seconds):
        self.clock.move(float(seconds))

    def actor(self, who):
        if who in self.secrets:
            return tokens.actor_of(tokens.find(self.secrets[who].secret))
        if "/" in who:
            return tokens.account_actor(*who.split("/"))
        return access.CONSOLE if who == "console" else access.for_user(User.objects.get(username=who))

    def remember(self, mark, secret):
        name = f"{mark}{sum(each[0] == mark for each in self.secrets) + 1}"
        self.secrets[name] = secret
        return name

    def whom(self, user=None, **others):
        return {"user": accounts.find_user(user)} if user else others

    def at_(self, who, cluster):
        """Let this process be about the first of several clusters or another; its accounts are in the same database here."""
        self.settings.HOME, self.settings.ROLES_OF = self.home, cluster.removeprefix("home")
        self.settings.DATA = self.home if cluster == "home" else self.home / "clusters" / cluster

    def roles_(self, who, namespace):
        found = accounts.role_bindings(namespace)
        return ", ".join(f"{each.user or each.group or each.account} {each.role}" for each in found) or "none"

    def first_(self, who):
        found = accounts.ensure_administrator()
        return f"{found.username}, {'a' if found.is_superuser else 'no'} superuser{', by password' * found.has_usable_password()}"

    def connect_(self, who, name, subject, at="https://p"):
        user = accounts.find_user(who)
        identities.connect(user, Person(at, subject, name, ()))
        return identities.subject_of(user, at)

    def issued(self, who, whose, name="laptop", seconds=DAY_S, bound=None, **options):
        if "/" not in whose:
            return tokens.issue(self.actor(who), accounts.find_user(whose), name, seconds)
        options["bound"] = bound and Bound(*bound)
        return tokens.issue_for_account(self.actor(who), *whose.split("/"), name, seconds, **options)

    def is_(self, token, **options):
        found = tokens.find(self.secrets[token].secret, **options)
        return tokens.actor_of(found).name if found else "nobody"

    def sees_(self, who):
        seen = {row.pk for row in tokens.visible(self.actor(who))}
        return " ".join(name for name, made in self.secrets.items() if made.row.pk in seen) or "none"

    def join_(self, token, name, by="agent-1"):
        found = joining.join(self.actor(token), joining.Machine(name, by))
        own = tokens.find(found.token)
        return f"{found.name} {self.remember('t', tokens.Issued(found.token, own.expires, own))}" if own else found.name

    def fail_(self, name, address="10.0.0.1", times=1):
        for _ in range(times):
            logins.attempt(name, address, {}).failed()

    def ask(self, who, method, path, fields):
        browser, headers = self.browsers.setdefault(who, Client()), HEADERS[fields.pop("as", "")]
        answer = getattr(browser, method)(self.secrets.get(path, path), fields, **headers)
        browser.said = answer.content.decode()
        user = browser.session.get("_auth_user_id")
        where = [answer.headers[name] for name in ("Location", "Retry-After") if name in answer.headers]
        return " ".join(
            [str(answer.status_code), *where, "as", User.objects.get(pk=user).username if user else "nobody"]
        )
