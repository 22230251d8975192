"""What a person's program does with kr8s. It leaves its connections open at its end, so it is run as one."""

import sys
import urllib.request

import kr8s
from kr8s.objects import ConfigMap, Pod


def changes_are_made(api):
    made = ConfigMap({"metadata": {"name": "by-kr8s", "namespace": "default"}, "data": {"a": "1"}}, api=api)
    made.create()
    made.patch({"data": {"a": "2"}})
    assert ConfigMap.get("by-kr8s", namespace="default", api=api).data == {"a": "2"}
    made.label({"colour": "blue"})
    found = api.get("configmaps", namespace="default", label_selector={"colour": "blue"})
    assert [each.name for each in found] == ["by-kr8s"]
    made.delete()
    made.wait("delete", timeout=120)
    assert not made.exists()


def volcanos_kinds_are_found(api):
    assert "default" in [queue.name for queue in api.get("queues.scheduling.volcano.sh")]
    assert api.version()["gitVersion"].startswith("v1.")


def a_port_is_forwarded(api, name, port):
    pod = Pod.get(name, namespace="default", api=api)
    with pod.portforward(port, local_port="auto") as local:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{local}/", timeout=120)
        assert answer.read() == b"from the pod"


if __name__ == "__main__":
    with_kubeconfig = kr8s.api(kubeconfig=sys.argv[1])
    changes_are_made(with_kubeconfig)
    volcanos_kinds_are_found(with_kubeconfig)
    a_port_is_forwarded(with_kubeconfig, sys.argv[2], int(sys.argv[3]))
