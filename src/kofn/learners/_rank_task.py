"""A task of a Dask worker: one process of a fit, started, listened to, and ended with the task."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from kofn.learners._boosting_rank import Job, LostPeerError, Outcome

PROGRAM = "from kofn.learners._boosting_rank import main; main()"
PAUSE = 0.2  # seconds between two looks at whether the task is still wanted


class EndedProcessError(ConnectionError):
    """The process of a worker came to an end before its work had."""


def run_rank(job: Job, name: str) -> Outcome | None:
    """Do a job in a process of its own; None if the task was cancelled, which ends that process.

    Args:
        job: what to do.
        name: of the fit: that of the variable in which the address of its store is, and of the topic of its progress.

    Raises:
        EndedProcessError: the process was killed, or could not start.
        LostPeerError: a process of another worker does not answer.
        Exception: whatever else it raised.
    """
    from distributed import Event, Variable, get_worker

    worker = get_worker()
    key, address, known = worker.get_current_task(), Variable(name), Event(name)
    met = job.rank == 0  # the first process holds the store
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        try:
            messages = _messages(process)
            _send(process, job)
            while _wanted(worker, key):
                if not met and known.wait(timeout=PAUSE):
                    _send(process, address.get())
                    met = True
                try:
                    kind, content = messages.get(timeout=PAUSE)
                except Empty:
                    continue
                if kind == "progress":
                    worker.log_event(name, content)
                elif kind == "store":
                    address.set(content)
                    known.set()
                elif kind == "done":
                    outcome: Outcome = content
                    return outcome
                else:
                    raise content if kind == "failed" else _ended(process.wait(), said)
        finally:
            process.kill()
            process.wait()
    return None


def _wanted(worker: Any, key: Any) -> bool:
    """Whether anybody waits for a task: it is cancelled by the client, or when the client is no more."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state == "executing"


def _messages(process: subprocess.Popen[bytes]) -> SimpleQueue[tuple[str, Any]]:
    """What a process tells, as it comes; last that it has ended."""
    queue: SimpleQueue[tuple[str, Any]] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                queue.put(pickle.load(process.stdout))  # type: ignore[arg-type]  # which is a pipe
        except (EOFError, pickle.UnpicklingError):  # it has ended, perhaps in the middle of a message
            queue.put(("ended", None))
        except Exception as error:  # a message that cannot be read here
            queue.put(("failed", error))

    Thread(target=listen, daemon=True).start()
    return queue


def _send(process: subprocess.Popen[bytes], content: Any) -> None:
    with suppress(BrokenPipeError):  # it has ended, and that is told in its place
        pickle.dump(content, process.stdin, protocol=pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]  # a pipe
        process.stdin.flush()  # type: ignore[union-attr]  # a pipe


def _ended(status: int, said: IO[bytes]) -> ConnectionError:
    """Why a process is no more."""
    if status == -signal.SIGABRT:  # how LightGBM ends in a thread of its own whose connection is lost
        return LostPeerError("LightGBM has ended the process")
    if status == -signal.SIGKILL:
        return EndedProcessError("its process was killed, as the system does when memory runs out")
    if status < 0:
        return EndedProcessError(f"its process was ended by {signal.Signals(-status).name}")
    said.seek(0)
    last = said.read().decode(errors="replace").strip().splitlines()[-1:] or ["without a word"]
    return EndedProcessError(f"its process ended with status {status}: {last[0]}")
