"""The page's server answers every request of tests/hostile_cases.toml, with its headers and without a traceback."""

from __future__ import annotations

import socket
import struct
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from buddysim.web.server import ADDRESS, PageServer, open_server

REQUESTS = tomllib.loads((Path(__file__).parents[1] / "hostile_cases.toml").read_text(encoding="utf-8"))["request"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    site = tmp_path / "site"
    (site / "docs").mkdir(parents=True)
    for name in ("index.html", "python.zip", "docs/a.txt", "../secret"):
        (site / name).write_text("x" * 100_000)
    (site / "link").symlink_to(tmp_path / "secret")
    with open_server(site, 0) as opened:
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def answer_of(server: PageServer, request: bytes) -> bytes:
    with socket.create_connection((ADDRESS, server.server_port), timeout=10) as client:
        client.sendall(request.replace(b"HOST", f"{ADDRESS}:{server.server_port}".encode()))
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case["name"])
def test_a_request_has_its_answer(case: dict[str, Any], server: PageServer, capsys: pytest.CaptureFixture[str]) -> None:
    head = answer_of(server, case["request"].encode()).partition(b"\r\n\r\n")[0].decode()
    assert int(head.split()[1]) == case["answer"]
    for header in ("X-Content-Type-Options: nosniff", "base-uri 'none'", "frame-ancestors 'none'"):
        assert header in head
    assert capsys.readouterr().err == ""


def test_a_client_that_goes_away_says_nothing(server: PageServer, capsys: pytest.CaptureFixture[str]) -> None:
    for request in (b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /ind"):
        client = socket.create_connection((ADDRESS, server.server_port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
        client.sendall(request)
        client.close()
    time.sleep(0.1)
    assert answer_of(server, b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n")
    assert capsys.readouterr().err == ""


def test_a_request_that_fails_is_one_line(
    server: PageServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise ValueError("a\nb")

    monkeypatch.setattr(server.RequestHandlerClass, "translate_path", fails)
    answer_of(server, b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("buddysim: web: a request failed: ValueError")
