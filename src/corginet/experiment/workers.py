"""Work in processes: each job a fresh one of one thread; one that fails stops no other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from corginet.errors import UserError

J = TypeVar("J")
Outcome = dict[str, Any]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def n_cores() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def run_each(
    work: Callable[[J], Outcome],
    jobs: Sequence[J],
    n_processes: int,
    finished: Callable[[J, Outcome], None],
) -> None:
    """Run every job, and hand its outcome over as it comes: a result, or {'error': sentence}."""
    spawn = multiprocessing.get_context("spawn")
    waiting = deque(jobs)
    running: dict[Any, Any] = {}  # the end that receives → the process and its job
    try:
        while waiting or running:
            while waiting and len(running) < n_processes:
                receive, send = spawn.Pipe(duplex=False)
                job = waiting.popleft()
                process = spawn.Process(target=_child, args=(work, job, send), daemon=True)
                with _one_thread_each():
                    process.start()
                send.close()
                running[receive] = (process, job)
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                process, job = running.pop(ready)
                outcome = _received(ready)
                process.join()
                finished(job, outcome or {"error": _ended(process.exitcode)})
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()


def _received(connection: Connection) -> Outcome | None:
    with connection:
        try:
            found: Outcome = connection.recv()
        except EOFError:
            return None
    return found


def _ended(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"its process was ended by {name}; SIGKILL mostly means that memory ran out"
    return f"its process ended with code {code} before it had a result"


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """What starts in here computes with one thread."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _child(work: Callable[[J], Outcome], job: J, send: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        outcome = work(job)
    except UserError as error:
        outcome = {"error": str(error)}
    except Exception as error:  # whatever it is, the other cells go on
        outcome = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    send.send(outcome)


def _end_with_parent() -> None:
    """A killed parent leaves no workers behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
