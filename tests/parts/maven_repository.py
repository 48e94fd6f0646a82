"""A Maven repository on the loopback with one artifact, which it can stop sending half-way."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_FOLDER = "/org/atoll/toys/toy/1"
_POM = b"""<project><modelVersion>4.0.0</modelVersion><groupId>org.atoll.toys</groupId>
<artifactId>toy</artifactId><version>1</version><packaging>tar.gz</packaging></project>"""


class Repository:
    def __init__(self) -> None:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            info = tarfile.TarInfo("toy-1/lib/toy.jar")
            info.size = 1 << 20
            archive.addfile(info, io.BytesIO(os.urandom(info.size)))  # it stays as large
        self.tarball = out.getvalue()
        self.holds = True  # the second half back
        self.half_is_sent = threading.Event()
        self.ranges: list[str] = []  # of the requests for the tarball; '': all of it
        self.url = ""

    def words(self) -> tuple[str, str]:
        return hashlib.sha256(self.tarball).hexdigest(), str(len(self.tarball))

    def content(self, path: str) -> bytes | None:
        files = {f"{_FOLDER}/toy-1.pom": _POM, f"{_FOLDER}/toy-1.tar.gz": self.tarball}
        if path.endswith(".sha1") and (of := files.get(path.removesuffix(".sha1"))):
            return hashlib.sha1(of).hexdigest().encode()
        return files.get(path)


@contextmanager
def serving() -> Iterator[Repository]:
    repository = Repository()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = repository.content(self.path)
            if content is None:
                self.send_error(404)
                return
            wanted = self.headers.get("Range", "")
            is_tarball = content is repository.tarball
            if is_tarball:
                repository.ranges.append(wanted)
            begin = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
            self.send_response(206 if wanted else 200)
            if wanted:
                last = len(content) - 1
                self.send_header("Content-Range", f"bytes {begin}-{last}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - begin))
            self.end_headers()
            if is_tarball and repository.holds:
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                repository.half_is_sent.set()
                self.connection.settimeout(60)
                self.connection.recv(1)  # until the client goes
                return
            self.wfile.write(content[begin:])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        repository.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield repository
        server.shutdown()


def use(home: Path, repository: Repository) -> dict[str, str]:
    """The environment in which Maven asks this repository beside its usual one."""
    (home / ".m2").mkdir()
    (home / ".m2/settings.xml").write_text(
        "<settings><profiles><profile><id>toys</id><repositories><repository><id>toys</id>"
        f"<url>{repository.url}</url></repository></repositories></profile></profiles>"
        "<activeProfiles><activeProfile>toys</activeProfile></activeProfiles></settings>"
    )
    return {"MAVEN_OPTS": f"-Duser.home={home}", "HOME": str(home)}
