"""The supervisor starts the processes of a deployment, watches them, and ends them.

It does the I/O around `atoll.supervise.lifecycle`. It is the keeper's child and the engine's
parent. It ends everything when its owner's or its keeper's end of a pipe closes. The signal
handlers do nothing; it reads the numbers of signals from a pipe (signal.set_wakeup_fd).
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from atoll.host.api import Child, Host
from atoll.host.reaper import become_subreaper, reap
from atoll.inspect.processes import MARK, PROCESS_MARK
from atoll.schema.deployment import Deployment, NicCount, ProcessRecord, ProcessSpec, State
from atoll.store.files import write_new
from atoll.supervise import cgroup, lifecycle, records
from atoll.supervise.lastwords import last_words, oom_kills, why
from atoll.supervise.leftovers import log_summary, remove_leftovers
from atoll.supervise.pinning import Pinner
from atoll.supervise.place import placed_argv
from atoll.supervise.request import DETACH, READY, STOP, Lines, Message, Request
from atoll.supervise.termination import end_descendants, mark_of

_PROBE_EVERY_S = 0.05
_PROBE_TIMEOUT_S = 0.2
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    def __init__(
        self,
        request: Request,
        record: Deployment,
        *,
        host: Host,
        control: socket.socket,
        keeper_pipe: int,
    ) -> None:
        self._request = request
        self._record = record
        self._control = control
        self._keeper_pipe = keeper_pipe
        self._host = host
        self._life = lifecycle.lifecycle(request.processes)
        self._specs = {spec.name: spec for spec in request.processes}
        self._running: dict[str, Child] = {}
        self._deadline = self._host.monotonic() + request.start_timeout_s
        self._keeper_lives = True
        self._oom_kills = oom_kills(self._host)
        threads = request.plan.task_threads
        self._pinner = (
            Pinner(host, threads, lambda: self._record) if threads and not threads.openmp else None
        )

    def run(self) -> None:
        """Returns at the end of the deployment, when all of its processes have ended."""
        become_subreaper()
        request = self._request
        wakeup = _signals_into_pipe()
        commands = Lines(self._control)
        self._control.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._keeper_pipe, selectors.EVENT_READ)
            selector.register(wakeup, selectors.EVENT_READ)
            begun = False
            while not self._life.over:
                for key, _ in selector.select(self._select_timeout_s() if begun else 0):
                    if key.fileobj is self._control:
                        self._hear(commands)
                        if commands.closed:
                            selector.unregister(self._control)
                            self._apply(lifecycle.OwnerGone())
                    elif key.fileobj == self._keeper_pipe:
                        # Nobody writes into this pipe, so the keeper is gone.
                        selector.unregister(self._keeper_pipe)
                        self._keeper_lives = False
                        self._apply(lifecycle.KeeperGone())
                    else:
                        self._handle_signals(os.read(wakeup, 4096))
                # Not earlier: if the owner is gone already, nothing is started.
                if not begun:
                    begun = True
                    lay_out(
                        request.run_dir,
                        processes=request.processes,
                        files=request.files,
                        copies=request.copies,
                        links=request.links,
                    )
                    self._apply(lifecycle.Begin())
                    if self._pinner is not None:
                        self._pinner.start()
                self._probe()
        self._leave()

    def _select_timeout_s(self) -> float | None:
        return _PROBE_EVERY_S if self._life.state is State.STARTING else None

    def _hear(self, commands: Lines) -> None:
        for line in commands.read():
            if line == READY:
                self._apply(lifecycle.OwnerSaysReady())
            elif line == DETACH:
                self._apply(lifecycle.OwnerDetaches())
            elif line == STOP:
                self._apply(lifecycle.StopAsked())

    def _handle_signals(self, numbers: bytes) -> None:
        if signal.SIGCHLD in numbers:
            self._bury()
        if {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} & set(numbers):
            self._apply(lifecycle.StopAsked())

    def _bury(self) -> None:
        """Note which of our children have ended, and reap orphans."""
        for name, child in list(self._running.items()):
            status = child.poll()
            if status is not None:
                del self._running[name]
                log = self._log(name)
                self._note(name, exit_status=status)
                words = last_words(log, log_summary(self._request.plan.engine))
                how = why(status, words, self._oom_kills, oom_kills(self._host))
                # A process does not see its signal come: its log says nothing about its end.
                self._apply(lifecycle.Died(name, how, "" if status < 0 else words))
        self._reap()

    def _reap(self) -> None:
        children = {child.pid: child for child in self._running.values()}
        reap(lambda pid: pid in children and children[pid].poll() is not None)

    def _probe(self) -> None:
        for name in sorted(self._life.waiting):
            if name in self._running and _accepts(self._specs[name]):
                self._apply(lifecycle.Accepts(name))
        if self._life.state is State.STARTING and self._host.monotonic() > self._deadline:
            self._apply(lifecycle.TimeUp(self._request.start_timeout_s))

    def _apply(self, event: lifecycle.Event) -> None:
        self._life, actions = lifecycle.step(self._life, event)
        for action in actions:
            match action:
                case lifecycle.Start(names):
                    for name in names:
                        self._start(self._specs[name])
                case lifecycle.Tell(word, detail):
                    self._tell(word, detail)
                case lifecycle.Record():
                    self._write(self._life.state)
                case lifecycle.Finish():
                    self._finish()

    def _start(self, spec: ProcessSpec) -> None:
        self._tell("starts", spec.name)
        request = self._request
        marks = {MARK: mark_of(request.name, request.id), PROCESS_MARK: spec.name}
        child = self._host.spawn(
            placed_argv(request.launcher, request.plan, spec),
            env={**request.environment, **spec.env, **marks},
            cwd=os.path.join(request.run_dir, spec.cwd),
            log=self._log(spec.name),
        )
        self._running[spec.name] = child
        self._note(spec.name, pid=child.pid)

    def _log(self, name: str) -> str:
        return os.path.join(self._request.log_dir, f"{name}.log")

    def _note(self, name: str, *, pid: int | None = None, exit_status: int | None = None) -> None:
        """Bring the process's entry in the record up to date."""
        noted = []
        for process in self._record.processes:
            if process.spec.name == name:
                identity = process.id if pid is None else self._host.identify(pid)
                process = ProcessRecord(
                    spec=process.spec, id=identity, log=process.log, exit_status=exit_status
                )
            noted.append(process)
        self._record = self._record.model_copy(update={"processes": tuple(noted)})

    def _write(self, state: State) -> None:
        self._record = self._record.model_copy(update={"state": state, "error": self._life.error})
        records.write(self._record)

    def _tell(self, event: str, detail: str = "") -> None:
        try:
            self._control.sendall(Message(event, detail).encode())
        except OSError:
            # The owner is gone, or 200 KiB of lines wait for it. The record has everything.
            return

    def _finish(self) -> None:
        failed = self._life.state is State.FAILED
        self._write(State.FAILED if failed else State.STOPPING)
        self._tell("failed" if failed else "stopping", self._life.error)
        if self._pinner is not None:
            self._pinner.stop()
        end_descendants(self._host, grace_s=self._request.grace_s, reap=self._reap)

    def _leave(self) -> None:
        """Do the keeper's last duties if the keeper is gone."""
        if not self._keeper_lives:
            cgroup.leave(self._record.cgroup)
            cgroup.end(self._record.cgroup, self._record.id)
            close_record(self._record)


def lay_out(
    run_dir: str,
    *,
    processes: Iterable[ProcessSpec],
    files: Mapping[str, str],
    copies: Mapping[str, str],
    links: Mapping[str, str],
) -> None:
    """Make the files of the run folder (`atoll.engines.api.Layout`) and the processes' folders."""

    def place(name: str) -> str:
        path = os.path.join(run_dir, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return path

    for name, content in files.items():
        write_new(place(name), content, mode=0o600)
    for name, source in copies.items():
        write_new(place(name), Path(source).read_bytes(), mode=0o600)
    for name, target in links.items():
        os.symlink(target, place(name))
    for spec in processes:
        os.makedirs(os.path.join(run_dir, spec.cwd), mode=0o700, exist_ok=True)


def close_record(record: Deployment) -> None:
    """Remove the folders of a deployment that has ended, and its record unless it failed."""
    remove_leftovers(record)
    records.remove_folders(record)
    if record.state is not State.FAILED:
        records.forget(record.name)


def _signals_into_pipe() -> int:
    """The read end of a pipe from which the numbers of caught signals can be read."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda _number, _frame: None)
    return reader


def _accepts(spec: ProcessSpec) -> bool:
    """Whether the process accepts connections; True for one that has no port or socket."""
    address: str | tuple[str, int]
    if spec.ready_socket is not None:
        family, address = socket.AF_UNIX, spec.ready_socket
    elif spec.ready_port is not None:
        family, address = socket.AF_INET, (spec.ready_address, spec.ready_port)
    else:
        return True
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_TIMEOUT_S)
        return probe.connect_ex(address) == 0


def first_record(
    request: Request, *, boot_id: str, cgroup: str, nics: tuple[NicCount, ...] = ()
) -> Deployment:
    """The record of a deployment that has no processes yet."""
    return Deployment(
        name=request.name,
        id=request.id,
        boot_id=boot_id,
        run_dir=request.run_dir,
        scratch_dir=request.scratch_dir,
        cgroup=cgroup,
        plan=request.plan,
        state=State.STARTING,
        supervisor=None,
        keeper=None,
        processes=tuple(
            ProcessRecord(spec=spec, log=os.path.join(request.log_dir, f"{spec.name}.log"))
            for spec in request.processes
        ),
        endpoints=request.endpoints,
        nics=nics,
        access=request.access,
        options=request.options,
        created_unix_s=time.time(),
    )
