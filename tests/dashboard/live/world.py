"""A small world for live tests: pods in the store, a topic that lists them, sockets that listen."""

import asyncio
import json
import time

import msgspec
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from cluster import access
from cluster.models import RoleBinding
from cluster.store import Change, Create, Delete, Patch, store
from dashboard import live
from dashboard.live.consumer import LiveConsumer
from kube.resources import PODS
from proof.harness.waiting import HANG_S
from tests.builders import pod


def change_of(resource, namespace, name, obj):
    return Change(1, resource, namespace, name, "uid", "MODIFIED", 0, msgspec.json.encode(obj))


@live.topic("test:pods")
def pods(request):
    """Every pod of a namespace, as list items."""
    namespace = request.params.get("namespace", "")
    access.require(request.actor, "list", PODS, namespace)
    found = store.find(PODS, namespace=namespace, phase=request.params.get("phase"))
    parts = {
        f"pod-{each.name}": f'<li id="pod-{each.name}">{each.object["status"].get("phase", "")}</li>' for each in found
    }
    parts["count"] = f'<b id="count">{len(found)}</b>'
    return live.Parts(parts, [f"pod-{each.name}" for each in found], [live.Watch(PODS.id, namespace)])


def make(name, namespace="team-a"):
    return store.write(Create(PODS, pod(name, namespace=namespace, status={"phase": "Pending"})))[0]


def phase(name, word, namespace="team-a"):
    return store.write(Patch(PODS, namespace, name, {"status": {"phase": word}}, "status"))[0]


def remove(name, namespace="team-a"):
    return store.write(Delete(PODS, namespace, name, grace=0))[0]


def person(name, role="viewer", namespace="team-a"):
    user = User.objects.create_user(name, password="x")
    RoleBinding.objects.create(user=user, namespace=namespace, role=role)
    return user


def session_of(user):
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return session


in_db = sync_to_async


class Tab:
    """One tab's socket, and what it was told."""

    def __init__(self, user, session=None):
        self.user, self.session = user, session
        self.got = []

    async def __aenter__(self):
        if self.session is None and self.user.is_authenticated:
            self.session = await in_db(session_of)(self.user)
        scope = {"type": "websocket", "path": "/live/", "user": self.user, "session": self.session}
        self.socket = ApplicationCommunicator(LiveConsumer.as_asgi(), scope)
        await self.socket.send_input({"type": "websocket.connect"})
        assert (await self.socket.receive_output(timeout=HANG_S))["type"] == "websocket.accept"
        return self

    async def __aexit__(self, *_):
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.socket.wait(timeout=HANG_S)

    async def say(self, text):
        await self.socket.send_input({"type": "websocket.receive", "text": text})

    async def ask(self, **message):
        await self.say(json.dumps(message))

    async def subscribe(self, topic, revision=0):
        await self.ask(op="subscribe", id=topic, topic=topic, revision=revision)

    async def hear(self, **wanted):
        """The next message with these values; what comes before it is remembered."""
        deadline = time.monotonic() + HANG_S
        while True:
            output = await self.socket.receive_output(timeout=deadline - time.monotonic())
            message = json.loads(output["text"])
            self.got.append(message)
            if all(message.get(key) == value for key, value in wanted.items()):
                return message

    async def closing(self):
        """The code with which the server closes the socket."""
        deadline = time.monotonic() + HANG_S
        while True:
            message = await self.socket.receive_output(timeout=deadline - time.monotonic())
            if message["type"] == "websocket.close":
                return message["code"]


async def until(condition, what="the condition"):
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        await asyncio.sleep(0.01)
