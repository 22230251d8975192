"""What rules may ask about the cluster: each thing read once for each change that is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.conf import settings

from cluster.rules.node import node_engines
from cluster.rules.node.leases import LEASE_NAMESPACE
from cluster.rules.quota_accounts import Account
from cluster.store import Store, store
from cluster.store.types import Stored, key_of
from kube import resources, usage
from kube.kinds.pod import UNENDED
from kube.kinds.scheduling import PodGroupPhase
from kube.meta import Object
from kube.resources import Resource


class ClusterView:
    """What rules may ask about the cluster. Each thing is read once in the life of the view."""

    def __init__(self, source: Store = store) -> None:
        self._store = source
        self._objects: dict[tuple[str, str, str], Object | None] = {}
        self._children: dict[str, list[Object]] = {}
        self._classes: list[Object] | None = None
        self._listed: dict[tuple[str, str], list[Object]] = {}
        self._generated: set[str] = set()  # keys of generated names
        self.accounts: dict[str, Account] = {}  # what quotas leave of each namespace, for `cluster.api.quota_room`

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none."""
        key = (resource.id, namespace, name)
        if key not in self._objects:
            stored = self._store.get_or_none(resource, namespace, name)
            self._objects[key] = stored.object if stored else None
        return self._objects[key]

    def fetch(self, resource: Resource, keys: Sequence[tuple[str, str]]) -> None:
        """Read many objects at once, by namespace and name, so that `get` knows them."""
        rows = self._store.by_keys(resource, [f"{namespace}/{name}" for namespace, name in keys])
        for namespace, name in keys:
            row = rows.get(f"{namespace}/{name}")
            self._objects[resource.id, namespace, name] = None if row is None else row.object

    def queue(self, name: str) -> Object | None:
        """Return a queue."""
        return self.get(resources.QUEUES, "", name)

    def queue_children(self, name: str) -> list[Object]:
        """Return the queues whose parent is `name`."""
        if name not in self._children:
            self._children[name] = [queue.object for queue in self._store.find(resources.QUEUES, queue=name)]
        return self._children[name]

    def groups_in(self, queue: str) -> Mapping[str, int]:
        """Return how many pod groups a queue has in each phase, as they count."""
        schedulers = usage.VOLCANO_ALONE if settings.TARGET is None else usage.VOLCANO
        uses, completed_in = usage.Usage(), set[str]()
        for row in self._pod_groups(queue):
            group = usage.group_use(row.body)
            uses.put_group(row.key, group)
            if group.phase == PodGroupPhase.COMPLETED:
                completed_in.add(row.namespace)
        for row in self._store.find(resources.PODS, namespace=completed_in, phase=UNENDED):
            uses.put_pod(row.key, usage.pod_use(row.body, schedulers))
        return uses.groups_in[queue]

    def _pod_groups(self, queue: str) -> list[Stored]:
        return self._store.find(resources.POD_GROUPS, queue=queue)

    def priority_class(self, name: str) -> Object | None:
        """Return a priority class."""
        return self.get(resources.PRIORITY_CLASSES, "", name)

    def namespace(self, name: str) -> Object | None:
        """Return a namespace."""
        return self.get(resources.NAMESPACES, "", name)

    def priority_classes(self) -> list[Object]:
        """Return all priority classes."""
        if self._classes is None:
            self._classes = [row.object for row in self._store.find(resources.PRIORITY_CLASSES)]
        return self._classes

    def listed(self, resource: Resource, namespace: str) -> list[Object]:
        """Return all objects of a kind in a namespace, by name."""
        key = (resource.id, namespace)
        if key not in self._listed:
            self._listed[key] = [row.object for row in self._store.find(resource, namespace=namespace)]
        return self._listed[key]

    def machines(self) -> list[Object]:
        """Return the nodes with an agent of their own, which each has a lease of its name; simulated nodes share one."""
        names = [lease["metadata"]["name"] for lease in self.listed(resources.LEASES, LEASE_NAMESPACE)]
        keys = [("", name) for name in names if (resources.NODES.id, "", name) not in self._objects]
        self.fetch(resources.NODES, keys)
        return [node for name in names if (node := self.get(resources.NODES, "", name)) is not None]

    def keeps_wishes(self) -> bool:
        """Whether queues keep in `spec.state` what is wished of them; elsewhere clients of Volcano write the state itself."""
        return settings.TARGET is None

    def runs_images(self) -> bool:
        """Whether containers run what is in their images, as in any Kubernetes, and not programs of their machine."""
        return settings.TARGET is not None

    def needs_commands(self) -> bool:
        """Whether a container without a command has nothing to run: no machine of this cluster has an engine for images."""
        if settings.TARGET is not None:
            return False
        return not any((engine := node_engines.read(node)) and engine.works for node in self.machines())

    def service_account(self, namespace: str, name: str) -> Object | None:
        """Return a service account."""
        return self.get(resources.SERVICE_ACCOUNTS, namespace, name)

    def free_name(self, resource: Resource, namespace: str, base: str) -> str:
        """Return a name for `generateName` that nothing has, and that was not given before; AlreadyExists when none is found.

        What is judged with one view may be written only when all of it is.
        """
        name = self._store.free_name(resource, namespace, base, self._generated)
        self._generated.add(key_of(resource.id, namespace, name))
        return name

    def claim(self, namespace: str, name: str) -> Object | None:
        """Return a PersistentVolumeClaim."""
        return self.get(resources.CLAIMS, namespace, name)
