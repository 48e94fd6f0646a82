"""DuckDB on Atoll's workers: closing in any order, the end of the interpreter, fork.

Each program runs in a Python of its own. It must end by itself, without a word, with no worker
left, and leave a file that another process can open at once and that has all its data.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

BEGIN = """
import atexit, gc, multiprocessing, os, sys, threading, time
import duckdb
import atoll.duckdb
from atoll.errors import EngineFailed

ENDLESS = "select count(*) from range(1000000) a, range(10000000) b where a.range * b.range % 7 = 3"

def open(**options):
    return atoll.duckdb.connect(sys.argv[1], workers=4, **options)

def workers():
    count = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with __builtins__.open(f"/proc/self/task/{task}/comm") as comm:
                count += comm.read().startswith("atoll-")
        except (FileNotFoundError, ProcessLookupError):
            pass
    return count

def settle():
    for _ in range(3000):
        if not workers():
            return
        time.sleep(0.01)
    raise SystemExit(f"{workers()} threads are left")

def quietly(call):
    try:
        call()
    except duckdb.Error:
        pass

def refused(call):
    try:
        call()
    except duckdb.Error:
        return
    raise SystemExit("it goes on")

con = open()
con.execute("create table t as select 42 a")
"""

PROGRAMS = {
    # Closing
    "close during another thread's query leaves it its answer": """
for turn in range(4):
    con, answers = open(), []
    text = "select count(*) from range(3000) a, range(6000) b where (a.range + b.range) % 7 = 3"
    thread = threading.Thread(target=lambda: answers.append(con.execute(text).fetchall()))
    thread.start()
    while not any(query.wall_s == 0 for query in con.atoll.queries()):
        time.sleep(0.001)
    con.close()
    thread.join()
    assert len(answers) == 1 and answers[0][0][0] > 2_000_000, answers
settle()
""",
    "close during endless queries of another thread": """
def go_on(con):
    try:
        while True:
            con.execute("select count(*) from range(1000000)").fetchall()
    except duckdb.Error:
        pass

other = open().cursor()
thread = threading.Thread(target=go_on, args=(other,))
thread.start()
time.sleep(0.05)
other.close()
thread.join()
con.close()
settle()
""",
    "close": "con.close(); settle(); con.close()",
    "collector": "del con; gc.collect(); settle()",
    "cycle": """
class Holder: pass
holder = Holder()
holder.itself, holder.con, holder.relation = holder, con, con.sql("select 1")
del con, holder
gc.collect()
settle()
""",
    "an id that comes again": """
other, cursor = open(), con.cursor()
number = id(cursor)
del cursor
cursors = [other.cursor()]
while id(cursors[-1]) != number and len(cursors) < 1000:
    cursors.append(other.cursor())
con.close()
del other, cursors[:-1]
assert workers() and con.atoll.in_use
cursors.clear()
settle()
""",
    "cursor first": """
cursor = con.cursor()
cursor.close()
assert workers()
con.close()
settle()
""",
    "parent first": """
cursor = con.cursor()
con.close()
refused(lambda: cursor.execute("select 1"))
settle()
cursor.close()
""",
    "parent collected": """
cursor = con.cursor()
del con
gc.collect()
assert cursor.execute("from t").fetchall() == [(42,)] and workers()
del cursor
settle()
""",
    "relation outlives its connection": """
relation = con.sql("from t")
del con
gc.collect()
more = relation.filter("a > 3")
assert relation.fetchall() == [(42,)]
del relation
assert more.fetchall() == [(42,)] and workers()
del more
settle()
""",
    "relation of a closed connection": """
relation = con.sql("from t")
con.close()
settle()
refused(relation.fetchall)
""",
    "half a result": """
con.execute("select * from range(1000000)")
con.fetchmany(5)
con.close()
settle()
""",
    "same file twice": """
other = open()
assert other.atoll is con.atoll
con.close()
assert other.execute("from t").fetchall() == [(42,)] and workers()
other.close()
settle()
""",
    "blocks": """
con.close()
with open() as con:
    with con.cursor() as cursor:
        cursor.execute("from t")
    assert workers()
settle()
""",
    "another thread": """
thread = threading.Thread(target=con.close)
thread.start()
thread.join()
settle()
""",
    "while a query runs": """
cursor = con.cursor()
thread = threading.Thread(target=lambda: quietly(lambda: cursor.execute(ENDLESS).fetchall()))
thread.start()
while not con.atoll.queries()[-1].sql == ENDLESS:
    time.sleep(0.01)
while thread.is_alive():
    cursor.interrupt()
    thread.join(0.01)
con.close()
settle()
""",
    "in a function on a worker": """
others = [atoll.duckdb.connect(workers=4)]
def ended(x):
    others.clear()
    return x
con.create_function("ended", ended, ["BIGINT"], "BIGINT")
con.execute("select max(ended(range)) from range(1000000) where range % 122880 = 5").fetchall()
con.close()
settle()
""",
    "again and again": """
con.close()
for _ in range(20):
    open().execute("from t").close()
settle()
""",
    "uncommitted": "con.begin(); con.execute('insert into t values (43)'); con.close(); settle()",
    # The end of the interpreter
    "exit": "",
    "exit with cursors, relations, results": """
cursor = con.cursor()
relation = con.sql("select * from range(1000000)")
relation.fetchmany(5)
con.execute("select * from range(1000000)")
second = atoll.duckdb.connect(workers=2)
""",
    "exit calls back": """
atexit.register(lambda: con.execute("select sum(range) from range(1000000)").fetchall())
""",
    "exit while a daemon's query runs": """
cursor = con.cursor()
query = lambda: quietly(lambda: cursor.execute(ENDLESS).fetchall())
threading.Thread(target=query, daemon=True).start()
while not con.atoll.queries()[-1].sql == ENDLESS:
    time.sleep(0.01)
""",
    "exit while daemons query": """
def query():
    cursor = con.cursor()
    while True:
        cursor.execute("select sum(range) from range(300000)").fetchall()
for _ in range(4):
    threading.Thread(target=lambda: quietly(query), daemon=True).start()
time.sleep(0.3)
""",
    "exit while a daemon's query asks in turn": """
others = atoll.duckdb.connect(workers=2)
def asks(x):
    return others.cursor().execute("select 1").fetchall()[0][0]
con.create_function("asks", asks, ["BIGINT"], "BIGINT")
many = "select sum(asks(range)) from range(9999999)"
query = lambda: quietly(lambda: con.execute(many).fetchall())
threading.Thread(target=query, daemon=True).start()
time.sleep(0.5)
""",
    "exit while daemons open and close": """
def query():
    while True:
        with atoll.duckdb.connect(workers=2) as own:
            own.execute("select sum(range) from range(3000)").fetchall()
for _ in range(3):
    threading.Thread(target=lambda: quietly(query), daemon=True).start()
time.sleep(0.5)
""",
    "exit while a thread goes on": """
threading.Thread(target=lambda: (time.sleep(0.3), con.execute("from t").fetchall())).start()
""",
    # fork()
    "fork": """
child = os.fork()
if child == 0:
    calls = [lambda: con.execute("from t"), con.cursor, con.close, lambda: con.sql("from t"), open]
    calls += [lambda: con.atoll.policy, con.atoll.queries]
    for call in calls:
        try:
            call()
        except EngineFailed as fault:
            if "before a fork()" in str(fault):
                continue
        os._exit(1)
    del con
    gc.collect()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert con.execute("from t").fetchall() == [(42,)] and workers()
con.close()
settle()
""",
    "a forked child opens its own": """
child = os.fork()
if child == 0:
    with atoll.duckdb.connect(workers=3) as own:
        total = own.execute("select sum(range) from range(1000000)").fetchall()
    settle()
    # Not by sys.exit: DuckDB itself does not live through the end of such an interpreter.
    os._exit(0 if total == [(499999500000,)] else 1)
assert os.waitpid(child, 0)[1] == 0
""",
    "fork while a query runs": """
cursor = con.cursor()
thread = threading.Thread(target=lambda: quietly(lambda: cursor.execute(ENDLESS).fetchall()))
thread.start()
while not con.atoll.queries()[-1].sql == ENDLESS:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
while thread.is_alive():
    cursor.interrupt()
    thread.join(0.01)
""",
    "multiprocessing": """
process = multiprocessing.get_context("fork").Process(target=gc.collect)
process.start()
process.join()
assert process.exitcode == 0
assert con.execute("from t").fetchall() == [(42,)]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_ends_by_itself_and_keeps_the_data(name: str, tmp_path: Path) -> None:
    path = tmp_path / "data.duckdb"
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + PROGRAMS[name], str(path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # A daemon thread keeps the variables of its module, so that Python never frees the connections.
    assert "daemon" in name or not path.with_name("data.duckdb.wal").exists()
    with duckdb.connect(str(path), config={"threads": 1}) as con:
        assert con.execute("from t").fetchall() == [(42,)]


def test_daemons_go_no_further_once_the_interpreter_ends(tmp_path: Path) -> None:
    """What was registered before atoll.duckdb was imported runs after its own end."""
    begin = """
import atexit, time
turns = [0]
def look():
    before = list(turns)
    time.sleep(0.3)
    print("still" if turns == before and before[0] > 0 else f"{before} {turns}")
atexit.register(look)
"""
    daemon = """
def query():
    cursor = con.cursor()
    while True:
        quietly(lambda: cursor.execute("select sum(range) from range(300000)").fetchall())
        turns[0] += 1
for _ in range(2):
    threading.Thread(target=query, daemon=True).start()
while turns[0] < 5:
    time.sleep(0.01)
"""
    done = subprocess.run(
        [sys.executable, "-c", begin + BEGIN + daemon, str(tmp_path / "data.duckdb")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "still\n", "")
