"""Folders that a user's configuration includes."""

from __future__ import annotations

import re

from atoll.engines.included import with_folders

INCLUDE = re.compile(r"^include_dir '([^']+)'", re.MULTILINE)


def folders(text: str, **more: str) -> set[str]:
    texts = {"a.conf": text, **{name.replace("__", "/") + ".conf": "" for name in more}}
    return set(with_folders(texts, INCLUDE, ".conf")) - set(texts)


def test_an_empty_folder_that_is_included_is_there() -> None:
    assert folders("include_dir 'conf.d'\ninclude_dir './more/'\n") == {
        "conf.d/empty.conf",
        "more/empty.conf",
    }


def test_a_folder_with_files_and_one_elsewhere_are_left_alone() -> None:
    assert folders("include_dir 'conf.d'\n", conf_d="") == {"conf.d/empty.conf"}
    assert folders("include_dir 'own'\n", own__b="") == set()
    assert folders("include_dir '/etc/x'\ninclude_dir '../x'\n#include_dir 'y'\n") == set()
