"""A small OpenID Connect provider: real tokens, real signatures, and the checks that a provider makes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import secrets
import time
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from proof.harness.serving import in_thread
from volcano_ui.web import listen

CLIENT, SECRET = "volcano-ui", "the client's secret"
ALICE: dict[str, Any] = {"preferred_username": "alice", "groups": ["team-a", "staff"]}
FORM = """<!doctype html><html lang="en"><title>Provider</title><main><h1>Who are you?</h1><form method="post">
<label>Name <input name="name"></label><button name="answer" value="yes">Log in</button>
<button name="answer" value="no">Refuse</button></form></main></html>"""


class Provider:
    """The provider; `people` are claims by name, and what else can be set makes it answer wrongly."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.people: dict[str, dict[str, Any]] = {"alice": dict(ALICE), "bob": {"preferred_username": "bob"}}
        self.in_userinfo: Collection[str] = ()  # claims that stand in no token
        self.twist: dict[str, Any] = {}  # claims of the next tokens that are not as they should be
        self.skew_s = 0  # its clock is ahead
        self.gives_id_token = True
        self.broken: dict[str, int] = {}  # status by path
        self.described: dict[str, Any] = {}  # what the description says instead
        self.left: list[str] = []  # who logged out
        self._codes: dict[str, tuple[str, dict[str, str]]] = {}
        self._access: dict[str, str] = {}
        self.rotate()

    def rotate(self, kid: str | None = None) -> None:
        """Sign with a new key from now on, the only one that is published."""
        self.key = RSAKey.generate_key(2048, {"kid": kid or secrets.token_hex(4), "use": "sig", "alg": "RS256"})
        self.signs_with = self.key

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._description),
                Route("/authorize", self._authorize, methods=["GET", "POST"]),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
                Route("/userinfo", self._userinfo),
                Route("/logout", self._logout),
            ]
        )

    async def _description(self, request: Request) -> JSONResponse:
        if status := self.broken.get("description"):
            return JSONResponse({}, status)
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        names |= {"userinfo_endpoint": "userinfo", "end_session_endpoint": "logout"}
        found: dict[str, Any] = {name: f"{self.issuer}/{path}" for name, path in names.items()}
        found["id_token_signing_alg_values_supported"] = ["none", "HS256", "RS256"]
        found |= {"issuer": self.issuer, **self.described}
        return JSONResponse({name: value for name, value in found.items() if value is not None})

    async def _authorize(self, request: Request) -> Response:
        query = request.query_params
        assert query["client_id"] == CLIENT
        assert (query["response_type"], query["code_challenge_method"]) == ("code", "S256")
        if request.method == "GET":
            return HTMLResponse(FORM)
        form = await _form(request)
        if form["answer"] == "no":
            answer = {"error": "access_denied", "error_description": "not in the group lab"}
        else:
            answer = {"code": secrets.token_urlsafe()}
            self._codes[answer["code"]] = (form["name"], dict(query))
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({**answer, 'state': query['state']})}", 303)

    async def _token(self, request: Request) -> JSONResponse:
        if status := self.broken.get("token"):
            return JSONResponse({}, status)
        form = await _form(request)
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {expected}":
            return JSONResponse({"error": "invalid_client"}, 401)
        name, query = self._codes.pop(form["code"], ("", {}))
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != query.get("code_challenge") or form["redirect_uri"] != query["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access = secrets.token_urlsafe()
        self._access[access] = name
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": 300}
        if self.gives_id_token:
            answer["id_token"] = self._id_token(name, query["nonce"])
        return JSONResponse(answer)

    def _id_token(self, name: str, nonce: str) -> str:
        now = int(time.time()) + self.skew_s
        held = {key: value for key, value in self.people[name].items() if key not in self.in_userinfo}
        claims: dict[str, Any] = {"iss": self.issuer, "sub": f"id-of-{name}", "aud": CLIENT, "nonce": nonce}
        claims |= {"iat": now, "exp": now + 300, **held, **self.twist}
        header = {"alg": "RS256", "kid": self.key.kid}
        return jwt.encode(header, claims, self.signs_with)

    async def _keys(self, request: Request) -> JSONResponse:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    async def _userinfo(self, request: Request) -> JSONResponse:
        name = self._access[request.headers["authorization"].removeprefix("Bearer ")]
        return JSONResponse({"sub": f"id-of-{name}", **self.people[name], **self.twist})

    async def _logout(self, request: Request) -> RedirectResponse:
        query = request.query_params
        self.left.append(jwt.decode(query["id_token_hint"], self.key).claims["sub"])
        return RedirectResponse(query["post_logout_redirect_uri"], 303)


async def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl((await request.body()).decode()))


@contextlib.contextmanager
def running() -> Iterator[Provider]:
    """Serve a provider for the length of the block."""
    listener = listen("127.0.0.1", 0)
    provider = Provider(listener.getsockname()[1])
    config = uvicorn.Config(provider.application(), log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    with in_thread(config, listener):
        yield provider
