"""From what a pod says of its probes and hooks to what is to be done: pure.

Both are a command in the container, a request, or a connection; a hook may be
a pause, too.
"""

from __future__ import annotations

from kube.kinds.pod import Container, LifecycleHandler, Probe
from node.pods import environment
from node.pods.environment import ConfigError
from node.shim.order import Action

NOTHING = Action()
GRPC = (
    "This machine cannot ask by gRPC, as a probe of container {} wants; "
    "ask by exec (with a program such as grpc_health_probe), httpGet or tcpSocket."
)


def of_probe(probe: Probe, container: Container, address: str) -> Action:
    """Return what a probe does; ConfigError says why it cannot be done."""
    return _action(probe, container, address)


def of_hook(handler: LifecycleHandler | None, container: Container, address: str) -> Action | None:
    """Return what a hook does, None where there is none; ConfigError says why it cannot be done."""
    if handler is None:
        return None
    if handler.sleep is not None:
        return Action(seconds=handler.sleep.seconds)
    return _action(handler, container, address)


def _action(handler: Probe | LifecycleHandler, container: Container, address: str) -> Action:
    if handler.exec is not None:
        variables = {variable.name: variable.value for variable in container.env if variable.value_from is None}
        return Action(argv=tuple(environment.expand(word, variables) for word in handler.exec.command))
    if handler.http_get is not None:
        get = handler.http_get
        path = get.path if get.path.startswith("/") else f"/{get.path}"
        return Action(
            host=get.host or address,
            port=_port(get.port, container),
            path=path,
            https=get.scheme.upper() == "HTTPS",
            headers=tuple((header.name, header.value) for header in get.http_headers),
        )
    if handler.tcp_socket is not None:
        return Action(host=handler.tcp_socket.host or address, port=_port(handler.tcp_socket.port, container))
    raise ConfigError(f"container {container.name} has a probe or hook without an action")


def _port(port: int | str, container: Container) -> int:
    """Return the number of a port, which may be the name of one of the container's, or a number as text."""
    if isinstance(port, int):
        return port
    if port.isdecimal():
        return int(port)
    ports = [one.container_port for one in container.ports if one.name == port]
    if not ports:
        raise ConfigError(f'container {container.name} has no port named "{port}"')
    return ports[0]
