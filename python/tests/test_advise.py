"""`advise` says what the command line says."""

import json
import os
import subprocess

import pytest
from stores import command

import slowstart

ROOT = os.environ["SLOWSTART_ROOT"]
SERVICE = os.path.join(ROOT, "scenarios/captures/service")


def test_the_advice_is_that_of_the_command():
    advice = slowstart.advise(SERVICE)
    assert set(advice) == set(slowstart.Advice.__annotations__)
    told = subprocess.run([command(), "advise", SERVICE, "--json"], capture_output=True, check=True, text=True)
    assert advice == json.loads(told.stdout)
    assert advice["in_use"] == "hystart" and advice["use_instead"] is None and advice["none_because"] is None


def test_what_the_caller_knows_counts(tmp_path):
    (tmp_path / "notes").write_text("nothing\n")
    with pytest.warns(UserWarning, match="notes: .*; skipped"):
        advice = slowstart.advise(
            [SERVICE + "/1.pcapng.gz", tmp_path / "notes"], in_use="bbr3", size="5MB", cgroup="/sys/fs/cgroup/mine"
        )
    assert advice["in_use"] == "bbr3" and not advice["in_use_is_assumed"] and advice["size_bytes"] == 5_000_000
    assert "1 usable transfer, 6 needed" in advice["none_because"]
    assert (advice["recorded"]["files"], advice["recorded"]["failed"]) == (1, 1)


def test_bad_input_is_named(tmp_path):
    for given, words in [
        ({"in_use": "serach"}, 'in_use: found "serach" .*did you mean "search"'),
        ({"size": "much"}, 'size: found "much"'),
        ({"min_bytes": -1}, "min_bytes: found -1"),
    ]:
        with pytest.raises(ValueError, match=words):
            slowstart.advise(SERVICE, **given)
    with pytest.raises(ValueError, match="nothing-there"):
        slowstart.advise(tmp_path / "nothing-there")
