# mypy: ignore-errors
# ruff: noqa: F821, S108 -- a script that is only ever run inside a box
"""Serves a verifier that is loaded once: each request is answered by a process of its own. Stands behind a text that defines `load` and `answer`."""

import contextlib
import io
import json
import os
import signal
import socket
import sys
import traceback

SOCKET = "/tmp/verifier"


def main():
    if sys.argv[1:] == ["serve"]:
        serve(json.loads(sys.stdin.buffer.read()))
    else:
        out = os.dup(1)
        os.dup2(2, 1)
        word, setup, request = sys.stdin.buffer.read().split(b"\n", 2)
        os.write(out, word + answered(loaded(json.loads(setup)), request))
        os._exit(0)


def serve(setup):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET + ".new")
    listener.listen(16)
    state = loaded(setup)
    os.rename(SOCKET + ".new", SOCKET)  # who finds it is answered at once
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            with connection.makefile("rwb") as stream:
                stream.write(answered(state, stream.read()))
            os._exit(0)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def loaded(setup):
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            return load(setup), None
    except BaseException:  # whatever a foreign import does is told, never a crash of ours
        return None, told(printed)


def answered(state, request):
    printed = io.StringIO()
    verifier, failed = state
    if failed is not None:
        return json.dumps({"failed": failed}).encode()
    request = json.loads(request)
    signal.setitimer(signal.ITIMER_REAL, request.pop("seconds"))  # ends the process
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            said = answer(verifier, request)
        said = {**said, "printed": printed.getvalue()[-2000:]}
        return json.dumps(said, default=repr).encode()
    except BaseException:
        return json.dumps({"raised": told(printed)}).encode()


def told(printed):
    return (printed.getvalue()[-1000:] + traceback.format_exc(limit=-4))[-4000:]


main()
