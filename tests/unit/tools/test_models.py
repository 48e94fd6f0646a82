"""The models of the runtime's queues: the checker tells faults, and code and models agree."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.parts.paths import ROOT
from tools import check_models
from tools.check_models import VARIANTS, Outcome, Variant

# The model and the code that names the same steps.
CODE = {
    "barrier": ["native/src/runtime/waiting/barrier.cpp"],
    "deque": [
        "native/include/atoll/runtime/deque.hpp",
        "native/src/runtime/scheduler/deque.cpp",
    ],
    "domain": [
        "native/src/runtime/scheduler/domain.hpp",
        "native/src/runtime/scheduler/domain.cpp",
    ],
    "event": [
        "native/include/atoll/runtime/event.hpp",
        "native/src/runtime/waiting/event.cpp",
    ],
    "parking": [
        "native/include/atoll/runtime/detail/worker.hpp",
        "native/src/runtime/scheduler/parking.hpp",
        "native/src/runtime/scheduler/parking.cpp",
        "native/src/runtime/scheduler/wake_tree.hpp",
    ],
    "word_queue": ["native/src/runtime/scheduler/word_queue.hpp"],
    "yield_queue": ["native/src/runtime/scheduler/yield_queue.hpp"],
}
FROM_ELSEWHERE = {"push-publish", "steal-cas"}  # the deque's steps that parking's model shows

needs_spin = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("cc") is None,
    reason="needs spin and a C compiler: apt-get install spin gcc",
)


def labels(text: str) -> set[str]:
    """The steps that a file names: [claim], or several at once: [pop-lower, pop-fence]."""
    found = re.findall(r"\[([a-z]+-[a-z-]+(?:, [a-z-]+)*|claim)\]", text)
    return {label for group in found for label in group.split(", ")}


@pytest.mark.parametrize("model", CODE)
def test_model_and_code_name_the_same_steps(model: str) -> None:
    """A step that is moved or renamed on one side only is found here."""
    of_code = set().union(*(labels((ROOT / path).read_text()) for path in CODE[model]))
    of_model = labels((check_models.MODELS / f"{model}.pml").read_text())
    assert len(of_code) >= 5
    assert of_model - of_code <= FROM_ELSEWHERE
    assert of_code <= of_model


@pytest.mark.parametrize("model", CODE)
def test_every_variant_is_told_in_its_model(model: str) -> None:
    text = (check_models.MODELS / f"{model}.pml").read_text()
    flags = {flag for v in VARIANTS if v.model == model for flag in v.flags}
    assert {flag for flag in flags if not re.search(rf"^ \* +.*\b{flag}\b", text, re.M)} == set()
    assert any(v.model == model and v.fault is None and not v.flags for v in VARIANTS)


def test_what_is_no_proof_is_a_complaint() -> None:
    holds = Variant("deque", (), None, "")
    fails = Variant("deque", (), "each_once", "")
    assert check_models.complaint(holds, Outcome(None, 9, True)) is None
    assert check_models.complaint(holds, Outcome(None, 9, False)) == "the search was cut off"
    assert "this fails" in str(check_models.complaint(holds, Outcome("each_once", 9, True)))
    assert check_models.complaint(fails, Outcome("each_once", 9, True)) is None
    assert "but holds" in str(check_models.complaint(fails, Outcome(None, 9, True)))
    assert "through==3" in str(check_models.complaint(fails, Outcome("(through==3)", 9, True)))


def test_a_report_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no report"):
        check_models.read_outcome("pan: out of memory")
    with pytest.raises(ValueError, match="no assertion"):
        check_models.read_outcome("errors: 1\n 5 states, stored")
    cut = "max search depth too small\nerrors: 0\n 5 states, stored"
    assert check_models.read_outcome(cut) == Outcome(None, 5, False)


@needs_spin
def test_spin_finds_what_an_expectation_has_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """The smallest model, rightly and wrongly expected; `make models` checks them all."""
    lock = [v for v in VARIANTS if v.model == "yield_queue"]
    rightly = next(v for v in lock if v.flags == ("NO_LIGHT_FENCE",))
    wrongly = Variant("yield_queue", (), "inside", "made for this test")
    assert check_models.check([rightly, wrongly]) == 1
    said = capsys.readouterr().out
    assert said.startswith("ok    yield_queue fails")
    assert "WRONG yield_queue holds" in said
