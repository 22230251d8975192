"""Where the files of claims are: each node has a directory of a claim's uid, which goes with the claim.

Names come back: a claim that is deleted and created again is another one, and
perhaps somebody else's. So a directory is found by the uid. A pod stays with its
first directory, also when its claim is deleted and a container of it starts
again: the uids are in a file beside its attempts, from which the next agent
reads, too, which directories are in use.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from kube.kinds.core import Pod
from node import file_trees
from node.attempts import write_identity
from node.paths import CLAIM, CLAIMS, FILES, Layout
from node.pods.environment import Claim, ConfigError, Lookup
from node.shim.shim import read_json, write_json
from node.volumes.retention import FRESH_S
from node.volumes.trash import discard

log = logging.getLogger(__name__)


def begin(layout: Layout) -> None:
    """Make the directory of claims; the first time, note when earlier ones stopped being found by their names (see `_adopt`)."""
    if layout.claims.exists():
        return
    if layout.named_claims.exists():
        os.utime(layout.named_claims)
        log.info(
            "claims' directories in %s move to %s when a pod first uses them; what stays is of claims that are gone",
            layout.named_claims,
            layout.claims,
        )
    layout.claims.mkdir(parents=True)


def directory(layout: Layout, pod: Pod, name: str, lookup: Lookup) -> Path:
    """Return where a pod finds the files of a claim, which need not exist yet; ConfigError when there is no such claim."""
    file = layout.pod(pod.metadata.uid) / CLAIMS
    claim_uids = read_json(str(file))
    if name not in claim_uids:
        namespace = pod.metadata.namespace
        claim = lookup.claim(namespace, name)
        if claim is None:
            raise ConfigError(f'persistentvolumeclaim "{name}" not found')
        home = layout.claim(claim.uid)
        home.mkdir(parents=True, exist_ok=True)
        identity = {"namespace": namespace, "name": name, "cluster": lookup.cluster()}
        write_identity(home / CLAIM, identity)
        if not (home / FILES).exists():
            _adopt(layout.named_claims, namespace, name, claim, home / FILES)
        claim_uids[name] = claim.uid
        write_json(str(file), claim_uids, sync=True)
    return layout.claim(claim_uids[name]) / FILES


def _adopt(earlier: Path, namespace: str, name: str, claim: Claim, files: Path) -> None:
    """Take over the directory that an earlier version had for a claim of this name.

    It is this claim's only if the claim is older than the update and than the
    last change of the directory: otherwise what is in it is of a claim that is
    gone, and stays where it is. A pod without mounts that has run since then knows the old path.
    """
    old = earlier / namespace / name
    try:
        status, updated = os.lstat(old), os.lstat(earlier).st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(status.st_mode) and claim.created <= min(status.st_ctime, updated):
        file_trees.move(old, files)
        old.symlink_to(files)


def clean(layout: Layout, pods: Collection[str], lookup: Lookup) -> None:
    """Take away the directories of claims that the cluster no longer has, but those that one of the pods was given.

    What was made by the agent of another cluster is left alone, and everything
    while the cluster does not answer.
    """
    used = {uid for pod in pods for uid in read_json(str(layout.pod(pod) / CLAIMS)).values()}
    candidates = set(_of_cluster(layout, lookup.cluster())) - used
    gone = candidates - lookup.existing_claims(candidates) if candidates else ()
    for uid in gone:
        log.info("claim %s is gone: its files are removed", uid)
        discard(layout.claim(uid), layout.trash)


def _of_cluster(layout: Layout, cluster: str) -> Iterator[str]:
    """Yield the claims of a cluster that have a directory, and not only since a moment ago."""
    for home in layout.claims.iterdir():
        is_ours = cluster and read_json(str(home / CLAIM)).get("cluster") == cluster
        if is_ours and time.time() - os.lstat(home / CLAIM).st_mtime > FRESH_S:
            yield home.name
