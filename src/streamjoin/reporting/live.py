"""Serves a page on this machine only, while whatever it tells of is running.

The server listens on the loopback interface and on no other: a report shows conditions, paths and errors, which are
nobody else's business. It also refuses requests whose `Host` is not this machine: a page of some web site must not read
a report by giving its own name our address. Its port may be another one, that of a tunnel's end (`ssh -L`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from time import monotonic
from typing import Final

from streamjoin.errors import CallError
from streamjoin.reporting.report import Report

LOOPBACK: Final = "127.0.0.1"
REFRESH_SECONDS: Final = 2.0


class Server(ThreadingHTTPServer):
    """Does not complain of readers who go away before they have their answer: the screen is the query's."""

    daemon_threads = True

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        """An error that an answer ended with."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class LivePage:
    """A page of the latest report, from `start` to `stop`. `latest` is asked when somebody looks, and may be slow."""

    def __init__(self, latest: Callable[[], Report], port: int | None = None) -> None:
        self.latest, self.lock = latest, threading.Lock()
        self.known: tuple[float, Report] | None = None
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Whoever runs a query does not want to see who looks at its page."""

        try:
            self.server = Server((LOOPBACK, port or 0), Handler)
        except OSError as error:
            raise CallError(
                f"the live page cannot have port {port}: {error.strerror}",
                hint="leave the port out: any free one will do",
            ) from None
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True, name="streamjoin live page")

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server.server_address[1])

    @property
    def address(self) -> str:
        """What to type into a browser."""
        return f"http://{LOOPBACK}:{self.port}/"

    def start(self) -> None:
        """Begin to answer."""
        self.thread.start()

    def stop(self) -> None:
        """Answer no more."""
        if self.thread.is_alive():
            self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """The page, or what a reader sees of it; nothing else is there."""
        if str(request.headers.get("Host")).partition(":")[0] not in (LOOPBACK, "localhost"):
            request.send_error(403, "this page is for this machine only")
            return
        if request.path not in ("/", "/main"):
            request.send_error(404)
            return
        try:
            report = self._report()
            text = report.html(refresh=REFRESH_SECONDS) if request.path == "/" else report.main()
        except Exception as error:  # the query is being stopped, or restarted: the page asks again
            request.send_error(503, type(error).__name__)
            return
        content = text.encode()
        request.send_response(200)
        request.send_header("Content-Type", "text/html; charset=utf-8")
        request.send_header("Content-Length", str(len(content)))
        request.send_header("Cache-Control", "no-store")
        request.send_header("X-Content-Type-Options", "nosniff")
        request.end_headers()
        request.wfile.write(content)

    def _report(self) -> Report:
        """The latest report; several readers within a second see the same one."""
        with self.lock:
            if self.known is None or monotonic() - self.known[0] > REFRESH_SECONDS / 2:
                self.known = monotonic(), self.latest()
            return self.known[1]
