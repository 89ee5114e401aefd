"""Who may talk to the server: this machine's own page, and nothing else.

Other pages in the same browser, other names that lead to this address (DNS rebinding), forms of
other sites, other users of the machine, and paths that lead elsewhere are refused.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

HOST = "127.0.0.1"
HEADER = "x-skprivacy"

# Bytes of a request: of an upload, and of any other.
_MOST_UPLOADED, _MOST_SENT = 200 * 2**20, 2**20

_UPLOAD = "application/octet-stream"

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_WHERE = "Open the address that the command printed. It works once: then start skprivacy ui again."


class TooLargeError(Exception):
    """More bytes arrived than may be sent: the application answers with 413."""


@dataclass(eq=False)
class Guard:
    """Refuses requests before the application sees them, and adds headers to every answer.

    The token in the address works once: it is exchanged for a cookie, which scripts cannot read,
    and for a secret that the page keeps for its tab and sends with every request of its own.
    Cookies of this address reach servers at all of its ports: the cookie alone is no proof.
    """

    app: App
    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _is_used: bool = False

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def headed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.encode(), text.encode()) for name, text in _HEADERS.items()]
                names = {name for name, _ in ours}
                kept = [each for each in message["headers"] if each[0].lower() not in names]
                message = {**message, "headers": kept + ours}
            await send(message)

        if self._is_entry(scope):
            await _answer(headed, 200, self._entry(), "text/html; charset=utf-8", self._setting())
            return
        if (refused := self._refused(scope)) is not None:
            await _answer(headed, *refused)
            return
        await self.app(scope, _limited(receive, _most(scope)), headed)

    def _is_entry(self, scope: Scope) -> bool:
        """Whether somebody comes with the token, for the first time."""
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        if scope["path"] != "/" or len(given) != 1 or self._is_used:
            return False
        is_ours = _one(scope, "host") == f"{HOST}:{self.port}" and scope["method"] == "GET"
        is_page = _one(scope, "sec-fetch-dest") in (None, "document")
        if not is_ours or not is_page or not _are_equal(given[0], self.token):
            return False
        self._is_used = True
        return True

    def _entry(self) -> str:
        """Return a page that keeps the secret for this tab, and leaves the token behind."""
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>skprivacy</title>'
            f'<meta name="secret" content="{self._secret}">'
            '<script type="module" src="/static/enter.js"></script></html>'
        )

    @property
    def _name(self) -> str:
        return f"skprivacy-{self.port}"

    def _setting(self) -> list[tuple[bytes, bytes]]:
        text = f"{self._name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"
        return [(b"set-cookie", text.encode())]

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """Return why a request is refused, as a status and a text; None if it is not."""
        host, path, method = f"{HOST}:{self.port}", scope["path"], scope["method"]
        if _one(scope, "host") != host:
            return 421, f"This server answers to {HOST} only."
        if method not in ("GET", "POST"):
            return 405, "Only GET and POST are allowed."
        origin, site = _one(scope, "origin"), _one(scope, "sec-fetch-site")
        if origin not in (None, f"http://{host}") or (method == "POST" and origin is None):
            return 403, "Another site asked for this."
        if site not in (None, "same-origin", "none"):
            return 403, "Another site asked for this."
        if not path.startswith("/") or "\\" in path or "\0" in path or ".." in path.split("/"):
            return 400, "This is no path."
        if not _are_equal(self._cookie_of(scope), self._cookie):
            return 403, _WHERE
        is_page = path == "/" or path.startswith("/static/")
        if not (is_page and method == "GET") and not _are_equal(_one(scope, HEADER), self._secret):
            return 403, _WHERE
        kind = (_one(scope, "content-type") or "").partition(";")[0].strip()
        if method == "POST" and kind not in ("application/json", _UPLOAD):
            return 415, "Only the page itself may send this."
        length = _one(scope, "content-length") or "0"
        if not length.isdecimal() or int(length) > _most(scope):
            return 413, "This is too large: 200 MB may be copied. Open the file by its path."
        return None

    def _cookie_of(self, scope: Scope) -> str:
        try:
            found = SimpleCookie(_one(scope, "cookie") or "").get(self._name)
        except CookieError:
            return ""
        return "" if found is None else found.value


def _one(scope: Scope, name: str) -> str | None:
    """Return a header; one that is there twice is like none that we know."""
    found = [text for key, text in scope["headers"] if key.lower() == name.encode()]
    return None if not found else found[0].decode("latin-1") if len(found) == 1 else "twice"


def _are_equal(given: str | None, known: str) -> bool:
    return hmac.compare_digest((given or "").encode(), known.encode())


def _most(scope: Scope) -> int:
    is_upload = (_one(scope, "content-type") or "").startswith(_UPLOAD)
    return _MOST_UPLOADED if is_upload and scope["path"] == "/upload" else _MOST_SENT


def _limited(receive: Receive, most: int) -> Receive:
    """Return what receives at most so many bytes, whatever the length that was announced."""
    n_bytes = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > most:
            raise TooLargeError
        return message

    return limited


async def _answer(
    send: Send,
    status: int,
    text: str,
    kind: str = "text/plain; charset=utf-8",
    more: list[tuple[bytes, bytes]] | None = None,
) -> None:
    body = text.encode()
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    start = {"type": "http.response.start", "status": status, "headers": headers + (more or [])}
    await send(start)
    await send({"type": "http.response.body", "body": body})
