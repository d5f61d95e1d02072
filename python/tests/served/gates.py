"""Gates at which the bodies of flows wait until the test lets them go on.

A body connects and says its name; from then on the test knows that it executes, and learns of its death by the end of
the connection. Nothing has to sleep.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

# Goes into the served folder as `gate.py`.
CLIENT = '''
import socket


def hold(name):
    """Says that this body is here, and waits for word from the test."""
    with socket.create_connection(("127.0.0.1", {port})) as line:
        line.sendall(name.encode() + b"\\n")
        word = line.recv(1)
    if word == b"f":
        raise ValueError(f"{{name}} was told to fail")
    if word != b"g":
        raise RuntimeError("the test has gone")
    return name
'''

GO, FAIL = b"g", b"f"
LIMIT_S = 30.0


class Gates:
    """All gates of a test; a name is a gate, and any number of bodies can wait at it."""

    def __init__(self) -> None:
        self.arrivals: list[str] = []
        self._held: list[tuple[str, socket.socket]] = []
        self._open: set[str] = set()
        self._is_open: Callable[[str], bool] = self._open.__contains__
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def client(self) -> str:
        """The module by which bodies wait here."""
        return CLIENT.format(port=self._listener.getsockname()[1])

    def held(self) -> list[str]:
        """The bodies that wait now, in the order of their coming."""
        with self._changed:
            return [name for name, _ in self._held]

    def wait_for(self, *names: str) -> None:
        """Returns once a body waits at each of these gates; a name given twice stands for two bodies."""
        self._wait(lambda: all(self._count(name) >= names.count(name) for name in names), f"{names} at their gates")

    def wait_gone(self, name: str) -> None:
        """Returns once nobody waits at this gate, whatever the reason."""
        self._wait(lambda: self._count(name) == 0, f"nobody at {name}")

    def let(self, *names: str, word: bytes = GO) -> None:
        """Waits for a body at each of these gates in turn, and gives it the word."""
        for name in names:
            self.wait_for(name)
            with self._changed:
                at = next(at for at, (held, _) in enumerate(self._held) if held == name)
                _, line = self._held.pop(at)
                self._send(line, word)
                self._changed.notify_all()

    def fail(self, name: str) -> None:
        """Waits for a body at this gate and has it raise a ValueError."""
        self.let(name, word=FAIL)

    def open(self, *names: str) -> None:
        """From now on nobody is held at these gates."""
        self._open.update(names)
        self._release(lambda name: name in names)

    def open_all(self) -> None:
        """From now on nobody is held at all."""
        self._is_open = lambda _: True
        self._release(lambda _: True)

    def close(self) -> None:
        """Lets everyone go for good."""
        self.open_all()
        self._listener.close()

    def _release(self, whom: Callable[[str], bool]) -> None:
        with self._changed:
            for name, line in self._held:
                if whom(name):
                    self._send(line, GO)
            self._held = [(name, line) for name, line in self._held if not whom(name)]
            self._changed.notify_all()

    def _count(self, name: str) -> int:
        return sum(held == name for held, _ in self._held)

    def _wait(self, check: Callable[[], bool], what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(check, LIMIT_S):
                held = [name for name, _ in self._held]
                raise TimeoutError(f"waited {LIMIT_S:.0f} s for {what}; held now: {held}, came so far: {self.arrivals}")

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, suppress(OSError):
            name = line.makefile("r", encoding="utf-8").readline().rstrip("\n")
            with self._changed:
                self.arrivals.append(name)
                if self._is_open(name):
                    self._send(line, GO)
                else:
                    self._held.append((name, line))
                self._changed.notify_all()
            line.recv(1)  # Returns when the body goes on, or is gone.
            with self._changed:
                self._held = [(held, other) for held, other in self._held if other is not line]
                self._changed.notify_all()

    @staticmethod
    def _send(line: socket.socket, word: bytes) -> None:
        with suppress(OSError):
            line.sendall(word)
