"""`atoll advise` on a kernel with two nodes: advice can be followed, and is then in force."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from atoll.guest.guest import Guest
from atoll.host.processes import Finished
from atoll.schema.advice import Advice, Line
from atoll.schema.base import parse

ATOLL = (sys.executable, "-m", "atoll")


@pytest.mark.long
@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_advice_that_was_followed_is_in_force(guest: Guest) -> None:
    def ran(*argv: str) -> Finished:
        done = guest.run(list(argv), timeout_s=120)
        assert done.returncode == 0, done
        return done

    def lines(prefix: list[str]) -> tuple[Advice, dict[str, Line]]:
        done = ran(*prefix, *ATOLL, "advise", "--json", "--", "/bin/true")
        made = parse(Advice, done.stdout, where="stdout")
        return made, {line.tuner: line for line in made.lines}

    made, first = lines([])
    assert (first["memory"].current, first["memory"].advised) == ("default", "interleave:0-1")
    assert first["numa-balancing"].leaves  # a memory policy settles it
    assert made.prefix == "atoll-exec -i 0-1 --"
    _, after = lines([f"{sys.prefix}/bin/atoll-exec", *shlex.split(made.prefix)[1:]])
    assert after["memory"].current == "interleave:0-1" and after["memory"].leaves

    confined = [f"{sys.prefix}/bin/atoll-exec", "-N", "1", "--"]
    _, bound = lines(confined)
    assert bound["memory"].advised == "bind:1"
    _, after = lines([*confined[:-1], "-m", "1", "--"])
    assert after["memory"].current == "bind:1" and after["memory"].leaves


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_a_knob_of_the_advice_is_applied_and_undone(guest: Guest) -> None:
    script = f"""
        cd /tmp && knob=/proc/sys/vm/zone_reclaim_mode && echo 1 > $knob
        atoll="{shlex.join(ATOLL)}"
        $atoll advise --json > advice.json && $atoll apply --plan advice.json
        cat $knob && $atoll undo --all && cat $knob && echo 0 > $knob
    """
    done = guest.run(["sh", "-c", script], timeout_s=120)
    assert done.returncode == 0, done
    said = done.stdout.splitlines()
    assert "zone-reclaim: 1 -> 0" in said and "zone-reclaim: 0 -> 1, as before" in said
    assert [line for line in said if line.isdecimal()] == ["0", "1"]
    assert json.dumps(said).count("atoll-exec -i 0-1") == 1  # the program's own advice is printed
