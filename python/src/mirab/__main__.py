"""The ``mirab`` command."""

import signal
import sys


def main() -> None:
    """Runs the native command with this interpreter for its engines, and exits with its code."""
    from mirab import _native

    # While native code runs, Python's own handler would only take note of Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.cli(sys.argv[1:], sys.executable))


if __name__ == "__main__":
    main()
