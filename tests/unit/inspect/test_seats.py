"""Which thread runs on which CPU, for any threads, any order of CPUs, any coming and going."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from atoll.inspect.seats import seats

bound = st.lists(st.one_of(st.none(), st.integers(0, 255)), max_size=40)
orders = st.lists(st.integers(0, 255), min_size=1, max_size=12, unique=True)


def shape(count: int, order: list[int]) -> Counter[int]:
    """How many of `count` threads each CPU has: thread k is on CPU k, then it begins again."""
    return Counter({cpu: len(range(at, count, len(order))) for at, cpu in enumerate(order)})


@given(orders, st.integers(0, 40))
def test_thread_k_has_cpu_k_and_then_the_order_begins_again(order: list[int], count: int) -> None:
    found = seats(dict.fromkeys(range(count)), order)
    assert list(found.values()) == [order[k % len(order)] for k in range(count)]


@given(orders, bound)
def test_no_cpu_has_two_threads_more_than_another_and_few_move(
    order: list[int], cpus: list[int | None]
) -> None:
    before = dict(enumerate(cpus))
    found = seats(before, order)
    assert list(found) == list(before)
    crowd = Counter(dict.fromkeys(order, 0))
    crowd.update(found.values())
    assert set(crowd) == set(order)
    assert max(crowd.values()) - min(crowd.values()) <= 1
    least, more = divmod(len(cpus), len(order))
    was = [sum(cpu == other for other in cpus) for cpu in order]
    may_stay = sum(min(count, least) for count in was) + min(
        more, sum(count > least for count in was)
    )
    assert sum(found[thread] == cpu for thread, cpu in before.items()) == may_stay
    assert seats(dict(found), order) == found


@given(orders, bound)
def test_without_gaps_the_first_cpus_are_used(order: list[int], cpus: list[int | None]) -> None:
    before = dict(enumerate(cpus))
    found = seats(before, order, close_gaps=True)
    wanted = shape(len(cpus), order)
    assert list(found) == list(before)
    assert +Counter(found.values()) == +wanted
    # As few as possible move: of each CPU's threads as many stay as it may have.
    stay = sum(found[thread] == cpu for thread, cpu in before.items())
    assert stay == (Counter(cpu for cpu in cpus if cpu is not None) & wanted).total()
    # Then nothing is left to be done.
    assert seats(dict(found), order, close_gaps=True) == seats(dict(found), order) == found


@given(orders, st.booleans(), st.data())
def test_threads_come_and_go(order: list[int], close_gaps: bool, data: st.DataObject) -> None:
    placed: dict[int, int | None] = {}
    for number in range(data.draw(st.integers(1, 30))):
        one_goes: bool = data.draw(st.booleans())
        if placed and one_goes:
            del placed[data.draw(st.sampled_from(sorted(placed)))]
        else:
            placed[number] = None
        before, placed = placed, dict(seats(placed, order, close_gaps=close_gaps))
        if close_gaps:
            assert +Counter(placed.values()) == +shape(len(placed), order)
        moved = [t for t, cpu in before.items() if cpu is not None and placed[t] != cpu]
        assert len(moved) <= 1  # one thread came or went
