"""HTTP for the desk: the only import of starlette, and of uvicorn.

The server listens on the loopback address only, and imports neither pandas nor scikit-learn: the
page is there before the process that computes has imported them.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..engines.file_tables import kind_of
from .choices import Choices
from .desk import Desk
from .guard import HOST, Guard, TooLargeError
from .worker import MOST_BYTES, TOO_LARGE

if sys.platform != "win32":
    import fcntl

_STATIC = Path(__file__).parent / "static"

# Folders of sessions begin with this, and a process id.
_PREFIX = "skprivacy-ui-"

# Seconds without news after which a line says that the server is there.
_SILENCE = 5.0

_PIECE = 1 << 20

# Characters of the name of a copy, at most: four bytes each, and systems take 255.
_LONGEST_NAME = 60


class Pages:
    """The routes, and those who listen for changes."""

    def __init__(self, folder: Path, path: str | None) -> None:
        self._folder, self._path = folder, path
        self._listeners: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """The desk, once the server runs."""
        assert self._desk is not None
        return self._desk

    def app(self) -> Starlette:
        """Return the application, without a guard."""
        routes = [
            Route("/", self._page),
            Route("/events", self._events),
            Route("/upload", self._upload, methods=["POST"]),
            Route("/download/{folder}/{name}", self._download),
            *(Route(f"/{name}", self._posted(do), methods=["POST"]) for name, do in self._does()),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ]
        too_large = {TooLargeError: _too_large}
        return Starlette(routes=routes, lifespan=self._running, exception_handlers=too_large)

    @asynccontextmanager
    async def _running(self, app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._desk = Desk(self._changed, self._folder)
        if self._path is not None:
            self._desk.open_table(self._path, self._path)
        try:
            yield
        finally:
            self._desk.close()

    def _changed(self) -> None:
        """Wake those who listen; called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it was closed meanwhile
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for each in self._listeners:
            each.set()

    def _does(self) -> list[tuple[str, Callable[[dict[str, Any]], dict[str, Any] | None]]]:
        """Return what the page may ask for, and how it is answered."""
        return [
            ("demo", lambda data: self._open_demo()),
            ("open", lambda data: self._open_path(_text(data, "path"))),
            ("header", lambda data: self.desk.open_again(data.get("is_header") is True)),
            ("delimiter", lambda data: self.desk.open_again()),
            ("choices", lambda data: {"asked": self.desk.choose(Choices.from_json(data))}),
            ("cancel", lambda data: self.desk.cancel()),
            ("secret", lambda data: self.desk.show_secret(data.get("is_shown") is True)),
            ("release", self._release),
        ]

    def _posted(
        self, do: Callable[[dict[str, Any]], dict[str, Any] | None]
    ) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            try:
                data = await request.json()
                if not isinstance(data, dict):
                    raise ValueError("A JSON object is expected.")
                found = await run_in_threadpool(do, data)
            except (ValueError, OSError, RecursionError) as error:
                return _refusal(error)
            return JSONResponse(found or {})

        return answer

    def _open_demo(self) -> None:
        self.desk.open_table(
            str(self._new_folder() / "patients.csv"), "patients.csv", is_demo=True
        )

    def _open_path(self, path: str) -> None:
        check_file(path := os.path.expanduser(path))
        self.desk.open_table(path, path)

    def _release(self, data: dict[str, Any]) -> None:
        handover = {name: _text(data, name)[:1000] for name in ("purpose", "recipient")}
        choices = Choices.from_json(data.get("choices"))
        self.desk.release(choices, data.get("is_confirmed") is True, handover)

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self._folder))  # 0700

    async def _page(self, request: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    async def _events(self, request: Request) -> Response:
        """Stream the state as lines of JSON: now, and whenever it changes."""
        return StreamingResponse(self._states(), media_type="application/x-ndjson")

    async def _states(self) -> AsyncIterator[str]:
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            while True:
                news.clear()
                yield json.dumps(await run_in_threadpool(self.desk.state)) + "\n"
                try:
                    await asyncio.wait_for(news.wait(), _SILENCE)
                except TimeoutError:
                    yield "\n"
                await asyncio.sleep(0.03)  # changes that come together are sent together
        finally:
            self._listeners.discard(news)

    async def _upload(self, request: Request) -> Response:
        """Copy a file that was dropped or picked."""
        name = Path(unquote(request.headers.get("x-name", "")).replace("\\", "/")).name
        path = self._new_folder() / (name[-_LONGEST_NAME:] or "table.csv")
        try:
            _, is_compressed = kind_of(path.name)
            await _copied(request, path, is_compressed)
        except (ValueError, OSError, zlib.error) as error:
            await run_in_threadpool(shutil.rmtree, path.parent)
            return _refusal(error)
        except BaseException:  # the guard stopped it, or the page went away
            shutil.rmtree(path.parent)
            raise
        self.desk.open_table(str(path), path.name, is_copy=True)
        return JSONResponse({})

    async def _download(self, request: Request) -> Response:
        given = request.path_params
        path = self.desk.file(given["folder"], given["name"])
        if path is None:
            return JSONResponse({"error": "There is no such file."}, 404)
        return FileResponse(path, filename=path.name)


async def _too_large(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": TOO_LARGE}, 413)


def _refusal(error: Exception) -> JSONResponse:
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return JSONResponse({"error": text}, 400)


def _text(data: dict[str, Any], name: str) -> str:
    if not isinstance(found := data.get(name, ""), str):
        raise ValueError(f"{name} must be a text.")
    return found


def check_file(path: str) -> None:
    """Check that a path is a regular file with a suffix of a table."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{path} is not a regular file.")
    kind_of(path)


async def _copied(request: Request, path: Path, is_compressed: bool) -> None:
    """Write the body of a request to a file, if it has few enough bytes once decompressed."""
    n_bytes, inflate = 0, zlib.decompressobj(wbits=31)
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        try:
            async for piece in request.stream():
                file.write(piece)
                n_bytes += 0 if is_compressed else len(piece)
                while is_compressed and piece:
                    n_bytes += len(inflate.decompress(piece, _PIECE))
                    piece = inflate.unconsumed_tail
                    if inflate.eof and inflate.unused_data:  # the next member of the file
                        piece, inflate = inflate.unused_data, zlib.decompressobj(wbits=31)
                    if n_bytes > MOST_BYTES:
                        break
                if n_bytes > MOST_BYTES:
                    raise ValueError(TOO_LARGE)
        except ClientDisconnect:
            raise ValueError("The page went away.") from None


# The folder of a session. ------------------------------------------------------------------------


@contextmanager
def session_folder() -> Iterator[Path]:
    """Yield a folder that only this user can read, and that is gone afterwards.

    Folders of sessions that were killed are removed.
    """
    remove_left_folders(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        with _alive(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_left_folders(place: Path) -> None:
    """Remove our own folders whose process has gone."""
    for folder in place.glob(f"{_PREFIX}*-*"):
        with suppress(OSError, ValueError):
            status = folder.lstat()
            is_ours = sys.platform == "win32" or status.st_uid == os.getuid()
            if stat.S_ISDIR(status.st_mode) and is_ours and not _is_alive(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _alive(folder: Path) -> BinaryIO:
    """Return an open file that nobody else can lock, or remove, before this process has gone.

    The number of a process would not do: another process gets it, or it counts elsewhere.
    """
    file = open(folder / "starting", "xb")  # noqa: SIM115
    if sys.platform != "win32":  # there, nobody can remove an open file
        fcntl.flock(file, fcntl.LOCK_EX)
        os.rename(folder / "starting", folder / "alive")
    return file


def _is_alive(folder: Path) -> bool:
    """Whether the process of a session still runs."""
    try:
        if sys.platform == "win32":
            (folder / "starting").unlink(missing_ok=True)
        else:
            with open(folder / "alive", "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (PermissionError, BlockingIOError):
        return True
    return False


# Serving. ----------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """A server that says where it is, once it is there."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def serve(path: str | None, port: int, ready: Callable[[str, Path], None]) -> None:
    """Serve the page until the process is told to stop.

    path : of a table to open, or None; port : 0 for any that is free; ready : called with the
    address and the folder of the session.
    """
    with session_folder() as folder, socket.socket() as listening:
        if os.name == "posix":  # elsewhere, this would let others take the port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        guard = Guard(Pages(folder, path).app(), listening.getsockname()[1])
        config = uvicorn.Config(
            guard,
            http="h11",
            ws="none",
            loop="asyncio",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        _Server(config, lambda: ready(guard.address, folder)).run(sockets=[listening])
