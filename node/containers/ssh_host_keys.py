"""The key by which a pod's sshd says who it is: the machine's own are nothing to a pod, and images would bring one.

Pods have one that have the keys of their job (the plugin `ssh`).
"""

from __future__ import annotations

import os
from pathlib import Path

from kube.kinds.core import Pod
from node.shim.order import Bind
from node.shim.path_walk import NEW_FILE

TARGET = Path("/etc/ssh/ssh_host_ed25519_key")  # where sshd looks by default
FILE_NAME = "_ssh_host_key"
SUFFIX = "-ssh"  # of a Secret with a job's keys, as Volcano calls it


def bind(pod: Pod, home: Path) -> tuple[Bind, ...]:
    """Return the mount of a pod's key, which is made with its first container; none for a pod that has no use for it.

    home is the pod's directory. OSError when the disk does not take it.
    """
    keys = pod.metadata.annotations.get("volcano.sh/job-name", "") + SUFFIX
    if not any(each.secret is not None and each.secret.secret_name == keys for each in pod.spec.volumes):
        return ()
    file = home / FILE_NAME
    if not file.exists():
        from cryptography.hazmat.primitives import serialization  # not in an agent that never makes one
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        draft = home / f"{FILE_NAME}.new"
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, NEW_FILE, 0o600), "wb") as stream:
            stream.write(key)
        draft.rename(file)
    return (Bind(str(file), str(TARGET), read_only=True),)
