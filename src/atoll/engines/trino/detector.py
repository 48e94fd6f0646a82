"""What the failure detector of a Trino or Presto coordinator reports about its workers.

A coordinator's list of nodes and its failure detector each look every 5 s for announced workers.
The list treats a worker unknown to the detector as active; the detector treats a newly seen worker
as failed until its first ping and `failure-detector.warmup-interval` (5 s) after it. So the list
drops a worker that it saw first at its next look or the one after, and takes it back later. Queries
in between go to the other workers, or fail (seen in Trino 476 and Presto 0.287; later versions of
Trino have no such detector).
"""

from __future__ import annotations

from urllib.parse import urlsplit

import requests

# Two looks of the list, and the delay of a busy machine. A worker active for that long stays.
SETTLES_S = 11.0


def trusted(http: requests.Session, place: str, user: str) -> set[str] | None:
    """The workers, as 'host:port', that the coordinator at `place` pings successfully.

    Empty if it does not answer: not every user may see a cluster's state. None if it has no such
    detector.
    """
    try:
        # In this order: a worker that appears in between counts as failed.
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
    """How long the `active` workers must stay active before that is known to last."""
    return 0.0 if trusted is None or active <= trusted else SETTLES_S
