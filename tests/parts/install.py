"""What the tests of installing share: small parts, and clients that are played."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from atoll.host.processes import Finished
from atoll.install.catalog import Artifact, Packages, Part, Wheel

JAR = b"a jar" * 100


def tarball_bytes(name: str = "toy-1") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo(f"{name}/lib/toy.jar")
        info.size = len(JAR)
        archive.addfile(info, io.BytesIO(JAR))
    return out.getvalue()


def wheel_bytes() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("jdk/home/bin/java")
        info.external_attr = 0o100755 << 16
        archive.writestr(info, "#!/bin/sh\n")
    return out.getvalue()


TARBALL, WHEEL = tarball_bytes(), wheel_bytes()
ARTIFACT = Artifact("org.toys", "toy", "1", hashlib.sha256(TARBALL).hexdigest(), "toy-1")
ENGINE = Part("toy-1", "1", ARTIFACT, len(TARBALL), len(JAR), "MIT")
JAVA = Part(
    "java-9",
    "9.1",
    Wheel(
        "jdk",
        "9.1",
        dict.fromkeys(("x86_64", "aarch64"), hashlib.sha256(WHEEL).hexdigest()),
        "jdk/home",
    ),
    len(WHEEL),
    1000,
    "MIT",
)
DEBIAN = Part("hello-1", "1", Packages(("hello",), with_depends=True), 1000, 1000, "MIT")


class Clients:
    """mvn and pip as they leave their files, or fail."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.tarball = TARBALL
        self.wheel = WHEEL
        self.fails = Finished(0, "", "")  # what a fetch ends with, if not with 0
        self.raises: BaseException | None = None
        self.before_the_end: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def fetches(self) -> int:
        return len([call for call in self.calls if "--version" not in call])

    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        tick: Callable[[], None] = lambda: None,
    ) -> Finished:
        with self._lock:
            self.calls.append(list(argv))
        if "--version" in argv:
            return Finished(0, "Apache Maven 3.8.7\n", "")
        assert cwd is not None
        if argv[0] == "mvn":
            target, content = cwd / "repository" / ARTIFACT.path, self.tarball
        else:
            target, content = cwd / "jdk-9.1-py3-none-any.whl", self.wheel
        target.parent.mkdir(parents=True, exist_ok=True)
        half = target.with_name(f"{target.name}.part")
        half.write_bytes(content[: len(content) // 2])
        tick()
        self.before_the_end()
        if self.raises is not None:
            raise self.raises
        if self.fails.returncode == 0:
            half.unlink()
            target.write_bytes(content)
        return self.fails
