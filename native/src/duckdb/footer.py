"""Make a DuckDB extension out of a shared library: `footer.py LIBRARY EXTENSION PLATFORM VERSION`.

DuckDB reads the last 512 bytes of the file: eight fields of 32 bytes in reverse order, then 256
bytes for a signature (zeros here). The header of a WebAssembly section named `duckdb_signature`
precedes them.
"""

from __future__ import annotations

import sys
from pathlib import Path

FIELD_BYTES = 32
SIGNATURE_BYTES = 256
API_VERSION = "v1.2.0"  # of DuckDB's C API for extensions; every later DuckDB accepts it


def footer(platform: str, version: str) -> bytes:
    fields = ["4", platform, API_VERSION, version, "C_STRUCT", "", "", ""]
    content = b"".join(text.encode().ljust(FIELD_BYTES, b"\0") for text in reversed(fields))
    content += bytes(SIGNATURE_BYTES)
    name = b"duckdb_signature"
    payload = len(name) + 1 + 2 + len(content)
    return b"\0" + _leb128(payload) + bytes([len(name)]) + name + _leb128(len(content)) + content


def _leb128(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


if __name__ == "__main__":
    library, extension, platform, version = sys.argv[1:]
    made = Path(library).read_bytes() + footer(platform, version)
    Path(extension).write_bytes(made)
