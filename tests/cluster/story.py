"""What people and programs do to objects, a line a deed, and what comes of it: written as in tests/cluster/objects.py.

Behind the arrow is the refusal, `done`, or `nothing` if nothing was stored, and in brackets what the audit has of it.

alice create vcjob other/x spec.maxRetry=9       who asks at the door of the API; also replace, update, patch, apply, delete
root update vcjob x spec.maxRetry=5 > spec       what is stored, with a change; what then stands at a path
root delete vcjob x uid=another; dry_run=true    with options (`OPTIONS`)
alice command queue default action=CloseQueue    a Command to an object
alice review vcjob x update=true                 what is wrong with an object, or odd
store pod p of=vcjob/x                           past the door, with owners that were met before: * is the controller, ! blocks its
                                                     owner's deletion; also write, change, remove, mirror
settle                                           controllers work until they have nothing to do
restart                                          others take their places, and work
after 60                                         time passes, and controllers work
see pod p status.phase                           what stands somewhere; `managers` are those of its fields, `owners` their names
names pod                                        which there are, of a kind
changes pod                                      what happened to those of a kind since that was last asked
"""

import re

import yaml

from cluster import access, api
from cluster.backend import Creation, OwnedRefused
from cluster.models import AuditEntry
from cluster.store import Create, Delete, Mirror, Patch, Update, store
from kube.errors import ApiError
from kube.resources import COMMANDS
from tests import builders
from tests.cluster.objects import as_yaml, at, otherwise, parsed

OPTIONS = {
    "of", "uid", "version", "dry_run", "manager", "force", "how", "subresource", "action", "grace", "propagation", "at", "anew",
    "update", "deleted",
}  # fmt: skip
OF_EVENT = re.compile(r"\.[0-9a-f]{15,}")  # the end of an event's name
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Story:
    """`controllers` makes the runners of controllers, where there are some; `clock` is one that is moved."""

    def __init__(self, clock=None, controllers=list, using=store, **actors):
        self.clock, self.controllers, self.store = clock, controllers, using
        self.actors, self.met, self.seen = {"system": access.SYSTEM, **actors}, {}, using.revision()
        self.restart()

    def tell(self, line):
        head, audited = self.store.revision(), len(self.audited())
        deed, _, paths = line.partition(" > ")
        who, _, rest = deed.partition(" ")
        actor, deed = (self.actors[who], rest) if who in self.actors else (access.SYSTEM, deed)
        verb, _, rest = deed.partition(" ")
        if verb in ("see", "names", "changes", "settle", "restart", "after", "renew", "step"):
            return list(filter(None, [getattr(self, verb)(*rest.split())]))
        if verb in ("create_many", "create_each", "own"):
            outcome = getattr(self, verb)(actor, *rest.split())
            return [f"{outcome} ({', '.join(self.audited()[audited:])}), {self.store.revision() - head} stored"]
        if verb == "review":
            return [self.review(actor, *self.written(rest))]
        try:
            stored = self.act(actor, verb, *self.written(rest))
            changed = "done" if self.store.revision() > head else "nothing"
            outcome = " ".join([changed, *look(stored.object, paths.split())])
        except ApiError as error:
            outcome = f"{type(error).__name__}: {UID.sub('UID', error.message)}"
        audit = ", ".join(self.audited()[audited:])
        return [f"{outcome} ({audit})" if audit else outcome]

    def audited(self):
        rows = AuditEntry.objects.order_by("id") if self.store is store else ()
        return [f"{row.verb} {row.name} {row.outcome}" + (f" × {row.count}" if row.count > 1 else "") for row in rows]

    def written(self, rest):
        """Return what is named by its word and place, the change, and the options."""
        word, path, rest = (*rest.split(maxsplit=2), "")[:3]
        parts = [each.strip() for each in rest.split("; ")]
        options = dict(each.split("=", 1) for each in parts if each.partition("=")[0] in OPTIONS)
        change = "; ".join(each for each in parts if each.partition("=")[0] not in OPTIONS)
        return f"{word}/{path}", change, {name: yaml.safe_load(value) for name, value in options.items()}

    def named(self, what):
        """Return the kind of an object, its namespace and name, and the plain one."""
        word, *namespace, name = what.split("/")
        kind, obj = parsed(word)
        key = (*namespace, "default" if kind.namespaced else "")[0], name
        obj["metadata"] = {"name": name, **({"namespace": key[0]} if kind.namespaced else {})}
        return kind, key, obj

    def act(self, actor, verb, what, change, options):
        (kind, key, obj), write = self.named(what), self.store.write
        owners = {"ownerReferences": self.owners(options.pop("of"))} if "of" in options else {}
        obj["metadata"] |= owners
        is_list = change.startswith("[")
        obj = obj if is_list else otherwise(obj, change)
        body = yaml.safe_load(change) if is_list else otherwise({"metadata": owners} if owners else {}, change)
        deeds = {
            "create": lambda: api.create(actor, kind, obj, **options),
            "replace": lambda: api.update(actor, kind, obj, **options),
            "update": lambda: api.update(actor, kind, otherwise(store.get(kind, *key).object, change), **options),
            "patch": lambda: api.patch(actor, kind, *key, body, **options),
            "apply": lambda: api.apply(actor, kind, *key, obj, **{"manager": "flux", **options})[0],
            "delete": lambda: api.delete(actor, kind, *key, **options),
            "delete_many": lambda: raised(*api.delete_many(actor, kind, [key])),
            "command": lambda: api.create(actor, COMMANDS, self.command(kind, obj, key, **options)),
            "store": lambda: write(Create(kind, obj))[0],
            "write": lambda: write(Update(kind, obj, **options))[0],
            "change": lambda: write(Patch(kind, *key, body, **options))[0],
            "remove": lambda: write(Delete(kind, *key, **options))[0],
            "mirror": lambda: write(Mirror(kind, obj, **options))[0],
        }
        stored = deeds[verb]()
        if verb not in ("remove", "delete"):
            self.met[what] = stored.object
        return stored

    def owners(self, of):
        return [
            builders.owner(self.met[each.strip("*!")], controller="*" in each, blockOwnerDeletion="!" in each)
            for each in ([of] if isinstance(of, str) else of)
        ]

    def command(self, kind, obj, key, action, uid=None):
        """A Command as vcctl writes it: to the object that has the name, unless a uid is given."""
        target = builders.owner(obj, uid=uid or store.get(kind, *key).uid, blockOwnerDeletion=True)
        owners = obj["metadata"].get("ownerReferences", [target])
        metadata = {"generateName": "c-", "namespace": "default", "ownerReferences": owners}
        return {"metadata": metadata, "action": action, "target": target}

    def many(self, word, places):
        return [self.named(f"{word}/{path}")[2] for path in places]

    def create_many(self, actor, word, *places):
        return outcomes(api.create_many(actor, parsed(word)[0], self.many(word, places)))

    def create_each(self, actor, word, *places):
        return outcomes(api.create_each([Creation(actor, parsed(word)[0], obj) for obj in self.many(word, places)]))

    def own(self, actor, word, owner, *places):
        kind, _, obj = self.named(owner)
        try:
            return api.create_with_owned(actor, kind, obj, parsed(word)[0], self.many(word, places)).name
        except OwnedRefused as error:
            return f"{error.code} {outcomes(error.refusals.values())} at {', '.join(map(str, error.refusals))}"
        except ApiError as error:
            return type(error).__name__

    def review(self, actor, what, change, options):
        kind, _, obj = self.named(what)
        found = api.review(actor, kind, otherwise(obj, change), **options)
        return ", ".join([cause.field or "the whole" for cause in found.causes] + list(found.warnings)) or "fine"

    def see(self, word, key, *paths):
        kind, key, _ = self.named(f"{word}/{key}")
        found = self.store.by_keys(kind, ["/".join(key)]).get("/".join(key))
        return "; ".join(look(found.object, paths)) if found else "gone"

    def names(self, word, namespace=None):
        found = self.store.find(parsed(word)[0], namespace=namespace)
        names = [" ".join([OF_EVENT.sub("", each.name), each.object.get("reason", "")]).strip() for each in found]
        return " ".join(names) or "none"

    def changes(self, word):
        found, self.seen = self.store.changes(self.seen, [parsed(word)[0]]), self.store.revision()
        return ", ".join(f"{each.verb} {each.name}" for each in found) or "none"

    def settle(self):
        """Let controllers work until they have nothing to do, which must come soon."""
        for _ in range(300):
            if not any([runner.step() for runner in self.runners]):  # noqa: C419  each has its turn
                return
        raise AssertionError("the controllers do not come to an end")

    def step(self):
        for runner in self.runners:
            runner.step()

    def restart(self):
        self.runners = self.controllers()
        self.settle()

    def after(self, seconds):
        """Let time pass in the steps in which controllers look again."""
        left = float(seconds)
        while left > 0:
            self.clock.move(min(left, 10))
            self.settle()
            left -= 10


def outcomes(found):
    return " ".join(type(each).__name__ if isinstance(each, Exception) else each.name for each in found)


def look(obj, paths):
    entries = obj["metadata"].get("managedFields", ())
    managers = [f"{each['manager']}/{each['operation']}{each.get('subresource', '')}" for each in entries]
    owners = [each["name"] for each in obj["metadata"].get("ownerReferences") or ()]
    special = {"managers": sorted(managers), "owners": owners}
    return [UID.sub("UID", as_yaml(special[path] if path in special else at(obj, path))) for path in paths]


def raised(outcome):
    if isinstance(outcome, ApiError):
        raise outcome
    return outcome
