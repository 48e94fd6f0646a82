"""Keeps secrets out of what is printed of a configuration. Pure.

A secret is known by its name, in any of the files that engines read: properties, option files,
flags of a JVM, shell, SQL, JSON, XML; by a URL's shape; by PEM's markers; by its file's name. Too
much is hidden rather than too little: all that follows on such a line, and what continues it.
"""

from __future__ import annotations

import re

from atoll.engines.userconfig.pieces import bodies

HIDDEN = "***"

# Looked for from a word's first letter only: a key of 4 kB would else take 10 s.
_NAME = (
    r"(?<![\w.$-])[\w.$-]*(?:passw(?:or)?d|passphrase|secret|token|credential|identified\s+by"
    # Galera's 'user:password'; a SAS of Azure's.
    r"|sst[-_]auth|(?<![a-z0-9])sas(?![a-z0-9])"
    r"|(?:private|shared|access|account|api)[-_.]?(?:access[-_.]?)?(?:key|signature)"
    # A name's last word: Trino's keystore.key is a password, gcs.json-key a whole key.
    r"|(?:key|pwd|pw|pass|auth|authorization)(?=[\"']?\s*[=:]|\s*</name>)"
    # The same where a blank sets the value off: behind a dot, as in spark-defaults.conf.
    r"|(?<=[.-])(?:key|pwd|pw|pass|auth)(?=[ \t]+\S))[\w.$-]*"
)
# Before the value: '=', '": ', '" value=', a blank; in XML the name's end and the value's begin.
_BETWEEN = r"(?:[\"']?\s*(?:value\s*)?[=:]\s*|\s*</name>\s*<value>\s*|>\s*|\s+)"
# A value begins with a '<' only behind a '=' or a ':', for elsewhere that is XML's.
_SECRET = re.compile(rf"({_NAME}(?:[\"']?\s*[=:]\s*(?=<)|{_BETWEEN}(?!<)))(\S.*)", re.IGNORECASE)
# The value is on the next lines: '"password":', '<name>x.password</name>', '<password>'.
_TO_COME = re.compile(rf"{_NAME}(?:[\"']\s*:|\s*</name>(?:\s*<value>)?|>)\s*$", re.IGNORECASE)
# To the last '@': the password may have one in it. Oracle's are 'thin:user/password@'.
# Lengths have bounds, or a long line of such beginnings would take seconds.
_IN_URL = re.compile(
    r"(://[^/\s:@]{0,256}:|jdbc:oracle:\w{1,16}:[^/\s:@]{0,256}/)\S{0,2048}@", re.IGNORECASE
)
# As curl is told: -u user:password, 'user:password' in quotes, or an argument of a list. Two
# numbers are those of an account and a group.
_OF_USER = re.compile(
    r"((?<![\w-])(?:-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user)(?:\s{1,16}|=|[\"'],\s?)"
    r"(?!\d+:\d+(?![^\s\"']))(?:[\"'][^:\"']{0,256}|[^\s:\"'=]{1,256}):)\S.*"
)
_FILE = re.compile(
    r"(?:^|/)(?:user|[^/]*(?:passw|secret|credential|token)[^/]*|[^/]*\.(?:pem|key|keytab))$",
    re.IGNORECASE,
)


def without_secrets(line: str) -> str:
    """The line with what looks like a secret's value, or a URL's password, as ***."""
    shown = _OF_USER.sub(rf"\1{HIDDEN}", _SECRET.sub(rf"\1{HIDDEN}", line))
    return _IN_URL.sub(rf"\1{HIDDEN}@", shown)


def masked_lines(text: str, *, path: str) -> list[str]:
    """Each line as it may be shown, also one that continues a secret of the line before."""
    if _FILE.search(path):
        return [HIDDEN] * len(bodies(text))
    shown: list[str] = []
    awaited = ""  # what ends the secret that goes on; empty where none does
    for line in bodies(text):
        if awaited:
            shown.append(HIDDEN)
            awaited = _still(awaited, line)
        else:
            shown.append(HIDDEN if "-----BEGIN" in line else without_secrets(line))
            awaited = _begun(line)
    return shown


def _begun(line: str) -> str:
    """What ends the secret that this line begins and does not end."""
    if "-----BEGIN" in line:
        return "" if "-----END" in line else "-----END"
    if _TO_COME.search(line):
        return "</value>" if "</name>" in line else "</" if line.rstrip()[-1] == ">" else "value"
    match = _SECRET.search(line)
    if match is None:
        return ""
    value = match[2]
    if value.endswith("\\"):
        return "\\"
    return _open_bracket(value) or _open_quote(value) or _open_element(line, value)


def _still(awaited: str, line: str) -> str:
    """What ends the secret after this line of it; empty if that was its end."""
    if awaited == "\\":
        return awaited if line.endswith("\\") else ""
    if awaited == "value":  # of JSON, on a line of its own
        return _open_bracket(line.strip()) or ("" if line.strip() else awaited)
    if set(awaited) <= set("]}"):
        return "]" * (len(awaited) + _depth(line))
    return "" if awaited in line else awaited


def _depth(text: str) -> int:
    return sum((letter in "[{") - (letter in "]}") for letter in text)


def _open_bracket(value: str) -> str:
    return "]" * _depth(value) if value[:1] in ("[", "{") else ""


def _open_quote(value: str) -> str:
    mark = next((mark for mark in ('"""', "'''", '"', "'") if value.startswith(mark)), "")
    return mark if mark and mark not in value[len(mark) :] else ""


def _open_element(line: str, value: str) -> str:
    return "</" if re.search(rf">\s*{re.escape(value)}$", line) and "</" not in value else ""
