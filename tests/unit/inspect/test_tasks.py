"""Which threads run tasks: by their short name, by the JVM's dump, by their process's title."""

from __future__ import annotations

import pytest

from atoll.engines import registry
from atoll.inspect.jvm import parse_thread_names
from atoll.inspect.processes import PROCESS_MARK
from atoll.inspect.tasks import SlotThreads, TaskFinder, Thread
from atoll.schema.plan import TaskThreads
from tests.parts.placed_threads import SUPERVISOR, WORKER, PlacedHost

JAVA = TaskThreads(comm="Executor task ", java="Executor task launch worker")
DUMP = """60:
2026-11-24 10:00:00
"main" #1 prio=5 os_prio=0 cpu=1.0ms elapsed=5s tid=0x00007f nid=0x3c waiting  [0x00007f]
"Executor task launch worker for task 0.0 in stage 1.0 (TID 5)" #40 daemon prio=5 nid=0x3d runnable
"Executor task "reaper"" #41 [62] daemon prio=5 os_prio=0 tid=0x00007f nid=62 waiting on condition
"""


def found(host: PlacedHost, finder: TaskFinder) -> set[int]:
    slots = finder.look(host.origins()).values()
    return {tid for slot in slots for _, tid in slot.tasks}


def test_the_start_of_the_short_name_is_compared() -> None:
    host = PlacedHost()
    host.thread(60, "server")
    host.thread(61, "task-1", 2)
    host.thread(62, "my-task")
    slot = TaskFinder(host, TaskThreads(comm="task-")).look(host.origins())[0]
    assert slot == SlotThreads(
        tasks={Thread(60, 61): frozenset({2})},
        others={Thread(60, 60): frozenset(range(4)), Thread(60, 62): frozenset(range(4))},
    )
    assert slot.seats((2, 3)) == {(60, 61): 2}


def test_a_jvm_is_asked_once_about_each_new_ambiguous_thread() -> None:
    host = PlacedHost()
    host.jvm_answers[WORKER, "Thread.print"] = DUMP
    for tid, comm in ((60, "java"), (61, "Executor task l"), (62, "Executor task r")):
        host.thread(tid, comm)
    finder = TaskFinder(host, JAVA)
    assert [found(host, finder) for _ in range(3)] == [{61}] * 3
    assert host.asked == 1
    host.thread(61, "Executor task i")  # the same thread, between two tasks
    assert found(host, finder) == {61}
    assert host.asked == 1
    host.thread(63, "Executor task l")
    assert found(host, finder) == {61}  # the dump does not have it
    assert host.asked == 2
    host.end(61)
    assert found(host, finder) == set()
    host.thread(61, "Executor task l")  # another thread with that id
    assert found(host, finder) == {61}
    assert host.asked == 3


def test_a_jvm_that_does_not_answer_is_named_with_the_reason() -> None:
    host = PlacedHost()
    host.thread(61, "Executor task l")
    finder = TaskFinder(host, JAVA)
    assert found(host, finder) == set()
    assert finder.faults == {WORKER: "no JVM"}
    host.jvm_answers[WORKER, "Thread.print"] = DUMP
    assert found(host, finder) == {61}
    assert finder.faults == {}


def test_a_session_is_a_process_with_a_title() -> None:
    host = PlacedHost()
    host.thread(60, "postgres")
    for pid, title in ((61, "postgres: checkpointer "), (62, "postgres: parallel worker")):
        host.add(pid, WORKER, title)
        host.thread(pid, "postgres", pid=pid)
    host.add(63, WORKER, "postgres: parallel worker")
    host.thread(63, "python3", pid=63)
    assert found(host, TaskFinder(host, TaskThreads(comm="postgres", title="postgres: par"))) == {
        62
    }


def test_of_an_openmp_program_every_thread_counts() -> None:
    host = PlacedHost()
    host.thread(60, "solver")
    host.thread(61, "solver")
    assert found(host, TaskFinder(host, TaskThreads(openmp=True))) == {60, 61}


def test_a_child_process_whose_parent_has_died_is_found_by_its_mark() -> None:
    host = PlacedHost()
    host.add(70, SUPERVISOR)
    host.files["/proc/70/environ"] = f"{PROCESS_MARK}=worker-0\0"
    host.thread(70, "task", pid=70)
    assert found(host, TaskFinder(host, TaskThreads(comm="task"))) == {70}


def test_names_in_a_dump_may_hold_quotes_and_ids_may_be_hexadecimal() -> None:
    assert parse_thread_names(DUMP) == {
        60: "main",
        61: "Executor task launch worker for task 0.0 in stage 1.0 (TID 5)",
        62: 'Executor task "reaper"',
    }


@pytest.mark.parametrize(
    "fields", [{}, {"comm": "a", "openmp": True}, {"comm": "("}, {"comm": "a", "java": "("}]
)
def test_how_threads_are_found_is_checked(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"regular expression"):
        TaskThreads.model_validate(fields)


def test_a_thread_that_waits_takes_no_place_and_leaves_a_cpu_that_is_taken() -> None:
    host = PlacedHost()
    host.thread(60, "task", 0)
    host.thread(61, "idle", 1)
    host.thread(62, "task", 0)
    host.thread(63, "idle", 0, 1, 2, 3)
    host.thread(64, "idle", 7)
    finder = TaskFinder(host, TaskThreads(comm="task|idle", idle="idle"))
    slot = finder.look(host.origins())[0]
    assert {tid for _, tid in slot.tasks} == {60, 62}
    seats = {tid: cpu for (_, tid), cpu in slot.seats((0, 1, 2, 3)).items()}
    assert seats == {60: 0, 62: 1, 61: 2}
    # Where no CPU is free it stays.
    assert {tid: cpu for (_, tid), cpu in slot.seats((0, 1)).items()} == {60: 0, 62: 1, 61: 1}


def test_a_session_waits_if_its_title_says_so() -> None:
    host = PlacedHost()
    for pid, state in ((61, "idle"), (62, "SELECT")):
        host.add(pid, WORKER, f"postgres: jane sales [local] {state}")
        host.thread(pid, "postgres", 1, pid=pid)
    threads = registry.get("postgresql").traits.task_threads
    assert isinstance(threads, TaskThreads)
    slot = TaskFinder(host, threads).look(host.origins())[0]
    assert ([*slot.idle], [*slot.tasks]) == ([(61, 61)], [(62, 62)])


@pytest.mark.parametrize(
    ("title", "runs_tasks"),
    [
        ("postgres: jane sales [local] SELECT", True),
        ("postgres: reporting: jane sales 10.0.0.5(41234) idle", True),
        ("postgres: parallel worker for PID 4711 ", True),
        ("postgres: reporting: parallel worker for PID 4711 ", True),
        ("postgres: checkpointer ", False),
        ("postgres: autovacuum worker sales", False),
        ("postgres: logical replication launcher ", False),
        ("postgres: walsender jane 10.0.0.5(41234) streaming 0/3000148", False),
        ("/usr/lib/postgresql/15/bin/postgres -c config_file=/x", False),
    ],
)
def test_titles_of_postgresql(title: str, runs_tasks: bool) -> None:
    host = PlacedHost()
    host.add(61, WORKER, title)
    host.thread(61, "postgres", pid=61)
    threads = registry.get("postgresql").traits.task_threads
    assert isinstance(threads, TaskThreads)
    slot = TaskFinder(host, threads).look(host.origins())[0]
    assert bool(slot.tasks or slot.idle) is runs_tasks
