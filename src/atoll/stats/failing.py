"""Whether one of two fails more often than the other, however often one looks. Pure.

Both run in the same blocks. Only blocks in which exactly one of them failed tell something
(McNemar, Psychometrika 12, 1947): if both fail alike, which one it was is a fair coin. So a bettor
against the coin wins on average nothing, and the chance that the capital ever reaches 1 / error is
at most the error (Ville's inequality; Shafer and others, Test Martingales, Bayes Factors and
p-Values, Statistical Science 26, 2011). Half of the capital always bets all of itself on the one,
which finds it first if the other never fails. The other half is spread evenly over all chances
above 1/2.
"""

from __future__ import annotations

from math import comb


def fails_more(own: int, others: int, error: float) -> bool:
    """`own`: the blocks in which only the one failed; `others`: only the other. `error`: the chance
    that this is ever true of two that fail alike."""
    return _capital(own, others) >= 1 / error


def _capital(own: int, others: int) -> float:
    """Of 1 at first. The spread half: 2^(n+1) times the integral of q^own (1-q)^others from 1/2 to
    1, by the binomial sum of the incomplete beta function."""
    blocks = own + others
    all_in = 2.0**own if others == 0 else 0.0
    below = sum(comb(blocks + 1, wins) for wins in range(own + 1))
    return (all_in + below / ((blocks + 1) * comb(blocks, own))) / 2
