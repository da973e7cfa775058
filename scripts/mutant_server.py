"""Processes that stand by for mutants: one that answers, and children that live for one piece of work."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Answers = Callable[[str, Any], Any]
"""From a module and what is asked about it to an answer."""


class Server:
    """Processes that answer what becomes of mutants: one that begins, and a fork of it for each job."""

    def __init__(self, begin: Callable[[Callable[[Answers], None]], None], jobs: int) -> None:
        pipes = [(os.pipe(), os.pipe()) for _ in range(jobs)]
        self._pid = os.fork()
        if not self._pid:
            for ask, told in pipes:
                os.close(ask[1])
                os.close(told[0])
            with suppress(BaseException):
                begin(lambda answers: _serve([(ask[0], told[1]) for ask, told in pipes], answers))
            os._exit(0)
        for ask, told in pipes:
            os.close(ask[0])
            os.close(told[1])
        self._lines = [(os.fdopen(ask[1], "wb"), os.fdopen(told[0], "rb")) for ask, told in pipes]

    def ask(self, job: int, module: str, asked: Any) -> Any:
        """The answer of one job's process. Raises RuntimeError when it has ended."""
        ask, told = self._lines[job]
        _tell(ask, (module, asked))
        with suppress(EOFError):
            return _told(told)
        raise RuntimeError("the tests cannot be collected, or fail without any mutant")

    def close(self) -> None:
        """Ends them."""
        for ask, told in self._lines:
            ask.close()
            told.close()
        os.waitpid(self._pid, 0)


def _serve(pipes: list[tuple[int, int]], answers: Answers) -> None:
    for ask, told in pipes:
        if os.fork():
            continue
        for other in pipes:
            if other != (ask, told):
                os.close(other[0])
                os.close(other[1])
        with os.fdopen(ask, "rb") as asked, os.fdopen(told, "wb") as out, suppress(BaseException):
            while True:
                _tell(out, answers(*_told(asked)))
        os._exit(0)
    for ask, told in pipes:
        os.close(ask)
        os.close(told)
    for _ in pipes:
        os.wait()


def _tell(stream: Any, what: Any) -> None:
    data = pickle.dumps(what)
    stream.write(struct.pack("!I", len(data)) + data)
    stream.flush()


def _told(stream: Any) -> Any:
    size = stream.read(4)
    if len(size) < 4:
        raise EOFError
    return pickle.loads(stream.read(*struct.unpack("!I", size)))


def quiet() -> None:
    """Says nothing more, whatever is run."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns in a child; None when it fails or ends the process."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        data = b""
        with suppress(BaseException):
            data = pickle.dumps(work())
        with os.fdopen(theirs, "wb") as out:
            out.write(data)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as told:
        data = told.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None
