"""House rules that no other tool checks, over the files that git tracks.

- A source file has at most 400 lines; tools/long_files.txt lists the few that may be longer, each
  with its reason.
- No committed text names a path of the machine that it was written on.
- No source file outside an engine's own package names the engine. tools/engine_names.txt lists the
  few exceptions, each with its reason. Example commands are allowed: `atoll plan ENGINE`.
- Only `atoll.host` starts processes, reads this process's environment, user and CPUs, and opens
  files of /proc and /sys. tools/system_reads.txt lists the few exceptions, each with its reason.
- No test file imports another; what they share is in tests/parts (or beside them, as in tests/vm).
- C++ outside of the simulated caches includes only the format of their board.
- Text that people read has none of the phrases that CONTRIBUTING.md, English, warns of.
- No built program is committed.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400
SOURCE = {".py", ".pyi", ".cpp", ".hpp", ".h", ".c", ".sh", ".html", ".css", ".js", ".cmake"}
# Home and work folders of a build machine. Recorded machines under tests/ are as they were.
MACHINE_PATH = re.compile(r"(?<![\w.$})~-])/(?:root|work|home/[a-z]\w*|tmp/s)/")

# What only the glossary and this file may spell out.
ENGLISH = {".md", ".py", ".cpp", ".hpp", ".h", ".j2", ".cmake", ".toml", ".sh"}
_MAY_QUOTE = ("CONTRIBUTING.md", "tools/house.py", "tests/unit/tools/test_house.py")
PHRASES = re.compile(
    r"\b(?:(?:is|are|was|were) (?:told|said)|is none of|to be had|for want of|so many"
    r"|(?:have|has) but|anew)\b"
    r"|(?:^[^\w\n]*|[.:;] )(?:Who(?! is\b)(?! it\b) [a-z]+s\b[^?\n]*$|Of an? )",
    re.MULTILINE,
)

REGISTRY = "src/atoll/engines/registry.py"
_REGISTERED = re.compile(r'"(\w+)": \("atoll\.engines\.(\w+)\.')
_SHORT_NAMES = {"postgres": "postgresql", "mysql": "mariadb"}  # name -> package
_EXAMPLE = re.compile(r"\batoll [a-z]+ [^;`\"]*")

_TEST = r"tests\.(?:\w+\.)*test_\w+"
_TEST_IMPORT = re.compile(
    rf"\s*(?:from ({_TEST}) import|import ({_TEST})|from tests\.\S+ import (test_\w+))"
)

_SIMULATION = re.compile(r'\s*#\s*include "cachesim/(?!board_of_guest\.hpp")')

# What only atoll.host may use: of `os`, and the first argument of a call that opens a file.
_SYSTEM_READS = {"environ", "getenv", "getuid", "geteuid", "sched_getaffinity", "cpu_count"}
_OPENS = {"open", "Path", "listdir", "scandir", "readlink", "stat"}
_SYSTEM_FILES = ("/proc", "/sys")


def tracked() -> list[Path]:
    """The files under version control that exist, links aside."""
    named = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    paths = (ROOT / name for name in named.split("\0") if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def reasons(text: str) -> dict[str, str]:
    """`PATH: REASON` lines of long_files.txt."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {path.strip(): why.strip() for path, _, why in (line.partition(":") for line in lines)}


def too_long(name: str, text: str, allowed: dict[str, str]) -> str:
    """The fault of a file that is too long; empty if it is not."""
    lines = text.count("\n")
    if lines <= MAX_LINES or allowed.get(name):
        return ""
    return f"{name}: {lines} lines, and {MAX_LINES} is the limit; split it"


def machine_paths(name: str, text: str) -> list[str]:
    """A fault for each line that names a path of somebody's machine."""
    return [
        f"{name}:{number}: names a path of this machine"
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]


def built_program(name: str, content: bytes) -> str:
    """The fault of a program or library that was built; empty of any other file."""
    return f"{name}: is a built program; remove it" if content.startswith(b"\x7fELF") else ""


def phrases(name: str, text: str) -> list[str]:
    """A fault for each phrase that plain English says otherwise."""
    if Path(name).suffix not in ENGLISH or name in _MAY_QUOTE:
        return []
    return [
        f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[0].strip()!r} is not plain "
        "English; see CONTRIBUTING.md"
        for found in PHRASES.finditer(text)
    ]


def engine_packages(registry: str) -> dict[str, str]:
    """Every name of an engine -> its package below src/atoll/engines."""
    return dict(_REGISTERED.findall(registry)) | _SHORT_NAMES


def engine_names(
    name: str, text: str, packages: dict[str, str], allowed: dict[str, str]
) -> list[str]:
    """A fault for each line of a source file that names an engine of another package."""
    if not name.startswith("src/") or any(name.startswith(path) for path in allowed):
        return []
    others = [
        engine
        for engine, package in packages.items()
        if not name.startswith(f"src/atoll/engines/{package}/")
    ]
    pattern = re.compile("|".join(others), re.IGNORECASE)
    return [
        f"{name}:{number}: names the engine {found[0]!r}; let its package declare the fact "
        "(EngineFacts)"
        for number, line in enumerate(text.splitlines(), 1)
        if (found := pattern.search(_EXAMPLE.sub("", line)))
    ]


def system_reads(name: str, text: str, allowed: dict[str, str]) -> list[str]:
    """A fault for each place where a module reaches for the system past `atoll.host`."""
    if not name.startswith("src/atoll/") or not name.endswith(".py"):
        return []
    if any(name.startswith(path) for path in allowed):
        return []
    return [
        f"{name}:{node.lineno}: uses {what}; go through atoll.host"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.expr | ast.stmt) and (what := _system_read(node))
    ]


def test_imports(name: str, text: str) -> list[str]:
    """A fault for each line of a test file that imports a test file, also within a script."""
    if not name.startswith("tests/") or not name.endswith(".py"):
        return []
    return [
        f"{name}:{number}: imports the test file {found[found.lastindex or 0]}; move what both use "
        "to tests/parts"
        for number, line in enumerate(text.splitlines(), 1)
        if (found := _TEST_IMPORT.match(line))
    ]


def simulation_includes(name: str, text: str) -> list[str]:
    """A fault for each line that includes more of the simulated caches than their board."""
    if not name.startswith("native/src/") or name.startswith("native/src/cachesim/"):
        return []
    return [
        f"{name}:{number}: includes a part of the simulation; only cachesim/board_of_guest.hpp is "
        "for others"
        for number, line in enumerate(text.splitlines(), 1)
        if _SIMULATION.match(line)
    ]


def _system_read(node: ast.AST) -> str:
    """What this node uses of the system; empty if nothing."""
    match node:
        case ast.Import(names=names) if any(each.name == "subprocess" for each in names):
            return "subprocess"
        case ast.ImportFrom(module="subprocess"):
            return "subprocess"
        case ast.ImportFrom(module="os", names=names):
            return next((f"os.{each.name}" for each in names if each.name in _SYSTEM_READS), "")
        case ast.Attribute(value=ast.Name(id="os"), attr=attribute) if attribute in _SYSTEM_READS:
            return f"os.{attribute}"
        case ast.Call(func=function, args=[first, *_]):
            called = getattr(function, "attr", getattr(function, "id", ""))
            owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
            path = first.values[0] if isinstance(first, ast.JoinedStr) and first.values else first
            text = str(path.value) if isinstance(path, ast.Constant) else ""
            opens = called in _OPENS and owner in ("", "os", "io", "pathlib")
            return text if opens and text.startswith(_SYSTEM_FILES) else ""
    return ""


def main() -> int:
    allowed = reasons((ROOT / "tools/long_files.txt").read_text())
    named = reasons((ROOT / "tools/engine_names.txt").read_text())
    packages = engine_packages((ROOT / REGISTRY).read_text())
    reads = reasons((ROOT / "tools/system_reads.txt").read_text())
    faults: list[str] = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            faults += filter(None, [built_program(name, path.read_bytes())])
            continue  # an image or an archive
        if path.suffix in SOURCE or path.read_bytes()[:2] == b"#!":
            faults += filter(None, [too_long(name, text, allowed)])
            faults += engine_names(name, text, packages, named)
            faults += system_reads(name, text, reads)
            faults += test_imports(name, text)
            faults += simulation_includes(name, text)
        if not name.startswith("tests/golden/"):
            faults += machine_paths(name, text)
            faults += phrases(name, text)
    faults += [
        f"tools/{file}.txt: {name}: does not exist"
        for file, names in (
            ("long_files", allowed),
            ("engine_names", named),
            ("system_reads", reads),
        )
        for name in names
        if not (ROOT / name).exists()
    ]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
