"""The live page: on this machine only, and always the latest."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from streamjoin.errors import CallError
from streamjoin.reporting.live import LivePage
from tests.reporting.making import report


@pytest.fixture
def page() -> Iterator[LivePage]:
    live = LivePage(lambda: report(3))
    live.start()
    yield live
    live.stop()


def ask(page: LivePage, path: str, host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_it_serves_the_page_and_what_is_new_of_it(page: LivePage) -> None:
    status, whole = ask(page, "/")
    assert status == 200
    assert "refresh-seconds" in whole
    assert ask(page, "/main") == (200, report(3).main())
    assert ask(page, "/etc/passwd")[0] == 404


def test_it_is_on_the_loopback_interface_only(page: LivePage) -> None:
    assert page.server.server_address[0] == "127.0.0.1"
    for host in ("example.org", f"example.org:{page.port}", "0.0.0.0", "", "localhost.example.org", "127.0.0.1.nip.io"):
        assert ask(page, "/main", host)[0] == 403
    for host in (f"localhost:{page.port}", "127.0.0.1", "localhost:9000"):  # the last one by a tunnel from there
        assert ask(page, "/main", host)[0] == 200
    with socket.socket() as other:  # nobody has the same port of another interface
        other.bind(("127.0.0.2", page.port))


def test_two_pages_have_two_ports_and_a_taken_one_is_refused(page: LivePage) -> None:
    other = LivePage(lambda: report(3))
    assert other.port != page.port
    other.server.server_close()
    with pytest.raises(CallError, match="cannot have port"):
        LivePage(lambda: report(3), page.port)


def test_a_page_that_was_never_started_stops() -> None:
    LivePage(lambda: report(3)).stop()


def test_a_reader_who_goes_away_is_nothing_to_tell(page: LivePage, capsys: pytest.CaptureFixture[str]) -> None:
    for sent in (b"GET / HT", f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode()):
        with socket.create_connection(("127.0.0.1", page.port)) as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # goes away with a reset
            reader.sendall(sent)
    assert ask(page, "/")[0] == 200
    deadline = time.monotonic() + 20
    while threading.active_count() > 2 and time.monotonic() < deadline:  # answers have threads of their own
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_a_query_that_cannot_be_asked_is_no_error_of_the_server() -> None:
    def failing() -> None:
        raise RuntimeError("being restarted")

    live = LivePage(failing)  # type: ignore[arg-type]
    live.start()
    assert ask(live, "/main")[0] == 503
    live.stop()
