"""What tests of stores share."""

import os
import subprocess

import pytest


def files(store):
    """The files of a store, by name."""
    found = [os.path.join(d, f) for d, _, names in os.walk(store) for f in names]
    return {os.path.relpath(f, store): open(f, "rb").read() for f in found}


def command():
    """The command line with the feature sweep, as other tests have built it."""
    program = os.path.join(os.environ["SLOWSTART_ROOT"], "target/debug/slowstart")
    if not os.path.exists(program):
        pytest.skip("no build of the command")
    if b"built without" in subprocess.run([program, "sweep", "query", "nowhere"], capture_output=True).stderr:
        pytest.skip("the command was built without the feature sweep")
    return program
