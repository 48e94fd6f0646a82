"""Reads and writes the files of settings that Java reads: properties and JVM flags. Pure.

The readers raise UsageError 'FILE:LINE: ...' for a line that Java refuses, and for one that Java
accepts but that cannot be meant. They never repeat the line: it may contain a password. Sources:
java.util.Properties.load of JDK 25; for jvm.config, the launcher of the engine that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from atoll.engines.userconfig.pieces import Piece, fault, lines
from atoll.errors import UsageError

# ---- Java properties, and files like them --------------------------------------------------------

_BLANK = " \t\f"
_PROPERTY = re.compile(r"((?:\\.|[^\\=: \t\f])*)([ \t\f]*[=:]?[ \t\f]*)(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_DANGLING = "ends with a backslash, but no line follows"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties(text: str, *, where: str) -> list[Piece]:
    pieces: list[Piece] = []
    natural = lines(text)
    number = 0
    for number, body, end in natural:
        start = body.lstrip(_BLANK)
        # After a line with only a backslash, the next line may be a comment.
        if not start or start[0] in "#!" or start == "\\":
            pieces.append(Piece(body + end))
            continue
        raw, logical = body + end, start
        while _is_continued(body):
            # A comment that Atoll adds below would become part of the value.
            following = next(natural, None)
            if following is None:
                raise fault(where, number, _DANGLING)
            _, body, end = following
            raw += body + end
            logical = logical[:-1] + body.lstrip(_BLANK)
        pieces.append(_property(raw, logical, end, f"{where}:{number}"))
    if pieces and pieces[-1].raw.strip() == "\\":
        raise fault(where, number, _DANGLING)
    return pieces


def _property(raw: str, logical: str, end: str, where: str) -> Piece:
    match = _PROPERTY.fullmatch(logical)
    assert match is not None, "a lone backslash at the end is a continuation"
    key, separator, value = match.groups()
    if not logical:
        return Piece(raw)
    if not key:
        raise UsageError(f"{where}: has no key; write key=value")
    if not separator:
        raise UsageError(f"{where}: has a key and no value; write key=value")
    one_line = raw.count("\n") + raw.count("\r") - raw.count("\r\n") <= 1
    before = raw[: len(raw) - len(value) - len(end)] if one_line else f"{key}="
    return Piece(
        raw,
        key=_unescaped(key, where),
        value=_unescaped(value, where),
        head=before,
        tail=end,
    )


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, where: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise UsageError(f"{where}: after \\u there must be four hexadecimal digits")
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _CONTROLS.get(escaped, escaped)

    units = _ESCAPE.sub(replace, text)
    # Java's characters are UTF-16 units; two escapes may be one character.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def write_property(text: str, *, is_key: bool = False) -> str:
    """Escapes text as `java.util.Properties.store` does, for a reader with any encoding."""
    named = {control: f"\\{name}" for name, control in _CONTROLS.items()} | {"\\": "\\\\"}
    special = "=: #!" if is_key else ""
    parts = []
    for place, character in enumerate(text):
        if character in named:
            parts.append(named[character])
        elif character in special or (place == 0 and character in "=: "):
            parts.append(f"\\{character}")
        elif " " <= character <= "~":
            parts.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass").hex()
            parts += [f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)]
    return "".join(parts)


# ---- files of arguments --------------------------------------------------------------------------

ARGUMENTS = "java.args"
INSTANCE_FLAGS = "java-opts"  # flags of one instance, which a file of all instances cannot have


def write_arguments(words: Sequence[str]) -> str:
    """A file for `java @FILE` (JDK 9 and later). In quotes, java changes only backslashes."""
    escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words)
    return "".join(f'"{word}"\n' for word in escaped)


# ---- JVM flags, one a line -----------------------------------------------------------------------

# Flags whose value may be on the next line, as it may be in the next argument.
_TAKES_VALUE = re.compile(r"--[a-z-]+|-cp|-classpath|-p")
_COLLECTOR = re.compile(r"-XX:[+-](Use\w+GC)")
COLLECTOR = "-XX:Use*GC"  # the kind of a flag that chooses a garbage collector
_KINDS = (
    re.compile(r"(-X(?:mx|ms|mn|ss))"),
    re.compile(r"(-XX:)[+-](\w+)"),
    re.compile(r"(-XX:\w+)="),
    re.compile(r"(-D[^=]+)"),
)
# Flags for a JVM that has a machine to itself, and why instances do not get them.
_COUNTS = r"-XX:(?:ActiveProcessorCount|(?:Parallel|Conc)GCThreads|CICompilerCount)="
_FOR_ONE_JVM = {
    _COUNTS: "the number of threads follows from the instance's CPUs",
    r"-Xmn|-XX:(?:(?:Max)?NewSize|(?:Min|SoftMax)HeapSize)=": "the plan decides the heap",
    # Files with %p in their names have the pid there.
    r"-Xloggc:(?!.*%p)|-Xlog:[^:]*:(?!std(?:out|err)(?::|$)|.*%p)[^:]": (
        "instances cannot share a log file; one with %p in its name stays"
    ),
    r"-agentlib:jdwp|-Xrunjdwp|-agentpath:[^=]*jdwp": "a debugger can run code in the server",
}
MACHINE_WIDE = re.compile("|".join(_FOR_ONE_JVM))
# Without those that count CPUs, which suit the one instance of a machine.
SHARED = re.compile("|".join(pattern for pattern in _FOR_ONE_JVM if pattern != _COUNTS))
_OTHER_NAMES = {"-XX:MaxHeapSize": "-Xmx", "-XX:InitialHeapSize": "-Xms"}


def flag_kind(flag: str) -> str:
    """The common name of flags of which only one can apply: '-Xmx', '-XX:UseNUMA',
    '-Duser.timezone', `COLLECTOR`. For any other flag, the flag itself."""
    if _COLLECTOR.fullmatch(flag):
        return COLLECTOR
    for pattern in _KINDS:
        if match := pattern.match(flag):
            kind = "".join(match.groups())
            return _OTHER_NAMES.get(kind, kind)
    return flag


def why_not_shared(flag: str) -> str:
    """Why an instance does not get a flag that matches `MACHINE_WIDE`; empty for other flags."""
    return next((why for pattern, why in _FOR_ONE_JVM.items() if re.match(pattern, flag)), "")


_FLAG_SIZE = re.compile(r"(\d+)([kmgt]?)", re.IGNORECASE | re.ASCII)
DIRECT_MEMORY = "-XX:MaxDirectMemorySize"


def direct_memory_bytes(words: Iterable[str], *, where: str) -> int:
    """The limit that these flags set for a JVM's direct buffers; 0 if they set none.

    Raises UsageError for a size that cannot be read."""
    found = 0
    for word in words:
        name, _, size = word.partition("=")
        if name == DIRECT_MEMORY:
            match = _FLAG_SIZE.fullmatch(size)
            if match is None:
                raise UsageError(f"{where}: {word!r}: not a size; use for example 2g")
            found = int(match[1]) << 10 * " kmgt".index(match[2].lower() or " ")
    return found


def flags(text: str, *, where: str) -> list[Piece]:
    pieces: list[Piece] = []
    awaits_value = False
    for number, body, end in lines(text):
        flag = body.strip()
        if not flag or flag.startswith("#"):
            pieces.append(Piece(body + end))
            continue
        if flag.startswith("@"):
            raise fault(where, number, "names a file of flags; put the flags themselves here")
        if not awaits_value and not flag.startswith("-"):
            raise fault(where, number, "is not a JVM flag; flags begin with '-'")
        if re.match(r"-(X(?!X)|XX:[+-])\S*\s", flag):
            raise fault(where, number, "contains a blank; write one flag per line")
        head = body[: body.index(flag)]
        key = "" if awaits_value else flag_kind(flag)
        awaits_value = not awaits_value and _TAKES_VALUE.fullmatch(flag) is not None
        if awaits_value:
            key = ""  # it may occur several times, each time with another value
        pieces.append(Piece(body + end, key=key, value=flag, head=head, tail=end))
    return pieces
