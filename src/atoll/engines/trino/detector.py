"""What the failure detector of a Trino or Presto coordinator says of its workers.

A coordinator's list of nodes and its failure detector each look every 5 s at who has announced
himself. To the list a worker that the detector does not know yet is active; to the detector one
that it has just met is a failed one, until the first ping and then as long again as
`failure-detector.warmup-interval` says (5 s). So a worker that the list met first is dropped at
its next look or the one after, and taken in again later; queries in between go to the others, or
fail (the modules of Trino 476 and Presto 0.287; later Trinos have no such detector).
"""

from __future__ import annotations

from urllib.parse import urlsplit

import requests

# Two looks of the list, and what a busy machine is late: a worker that was in meanwhile stays in.
SETTLES_S = 11.0


def trusted(http: requests.Session, place: str, user: str) -> set[str] | None:
    """The workers, as 'host:port', whom the coordinator at `place` pings and finds well.

    Empty where it does not say so: not to everybody is a cluster's state shown. None: it has no
    such detector.
    """
    try:
        # In this order: who comes to be known in between is a failed one.
        known, failed = (_listed(http, f"{place}/v1/node{part}", user) for part in ("", "/failed"))
    except (requests.RequestException, ValueError, TypeError, KeyError):
        return set()
    return None if known is None or failed is None else known - failed


def _listed(http: requests.Session, url: str, user: str) -> set[str] | None:
    answer = http.get(url, headers={"X-Trino-User": user}, allow_redirects=False)
    if answer.status_code == requests.codes.not_found:
        return None
    answer.raise_for_status()
    return {urlsplit(str(each["uri"])).netloc for each in answer.json()}


def settles_s(active: set[str], trusted: set[str] | None) -> float:
    """For how long `active` workers have to stay so until that is known to last."""
    return 0.0 if trusted is None or active <= trusted else SETTLES_S
