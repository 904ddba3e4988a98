"""Studies on other engines than the simulator."""

import pytest
import slowstart

PATH = "rate=20Mbit rtt=40ms queue=1bdp"


def test_a_comparison_runs_in_a_quic_stack():
    result = slowstart.compare(PATH, ["search", "hystart"], runs=2, size="1MB", engine="quic:quinn")
    assert result.rows["engine"] == ["quic"] * 4
    assert all(profile.startswith("quinn-proto") for profile in result.rows["profile"])
    assert set(result.samples["startup"]) == {"search", "hystart"}


def test_a_study_and_a_sweep_name_their_engine(tmp_path):
    study = f'path = "{PATH}"\nstartups = ["search"]\nsize = "1MB"\nruns = 1\n'
    by_key = slowstart.run('engine = "quic"\n' + study, samples=False).rows
    assert by_key["engine"] == ["quic"]
    assert by_key["completion_s"] == slowstart.run(study, engine="quic:quinn", samples=False).rows["completion_s"]
    assert slowstart.sweep(study + '[axes]\nrtt = "20,40ms"\n', tmp_path, engine="quic") == 2
    assert slowstart.rows(tmp_path, ["engine"])["engine"] == ["quic", "quic"]


def test_what_an_engine_cannot_run_is_refused():
    with pytest.raises(ValueError, match="against: the engine quic:quinn cannot run this"):
        slowstart.compare(PATH, ["search"], runs=1, engine="quic", against=["cubic@-1s"])
    with pytest.raises(ValueError, match="expected one of sim, quic:quinn, quic:noq, linux:KERNEL, kernel"):
        slowstart.compare(PATH, ["search"], runs=1, engine="quiche")


def test_the_kernel_runs_a_study_or_says_why_not():
    # The library of the tests has every feature that this machine can build; a wheel has no kernel.
    try:
        rows = slowstart.compare(PATH, ["search"], runs=1, engine="kernel").rows
    except (ValueError, RuntimeError, OSError) as e:
        assert any(word in str(e) for word in ("kernel", "emulator", "CAP_BPF")), e
    else:
        assert rows["engine"] == ["kernel"]
