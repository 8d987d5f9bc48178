"""A real S3 server, which checks signatures and conditions: all that holds with the simulated one, and every command."""

from __future__ import annotations

import pytest
from everywhere import RUNS, Folder, Remote, inputs, outcome, some
from pipeline.test_s3 import *  # noqa: F403 - every test there, with the fixture s3_endpoint of this folder
from remote_places import SECRET_KEY

from graphprep.cli.main import run as run_command

pytestmark = pytest.mark.xdist_group("s3 server")
_read = {}
del test_a_missing_extra_is_one_line  # noqa: F821 - it needs no server, and HDFS's own tests load what it hides


@pytest.mark.parametrize("run", some(RUNS), ids=lambda run: run.name)
def test_a_run_gives_what_a_local_one_gives(run, bucket, tmp_path, capsys):
    def out():
        return capsys.readouterr().out

    local = Folder(tmp_path / "in")
    local.put_all(inputs())
    expected = outcome(run, local.url, Folder(tmp_path / "out"), out)
    if not _read:
        _read["in"] = Remote(bucket.fs, f"{bucket.name}/", f"{bucket.url}/")
        _read["in"].put_all(inputs())
    assert outcome(run, _read["in"].url, Remote(bucket.fs, f"{bucket.name}/", f"{bucket.url}/"), out) == expected
    assert bucket.uploads() == []


def test_a_wrong_secret_is_told(bucket, monkeypatch, capsys):
    url = bucket.put("a.txt", b"0 1\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY[::-1])
    assert run_command(["convert", url, f"{bucket.url}/store", "--format", "edges"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"error: {bucket.url}/store: permission denied\n")
    assert "fix: check the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)" in err
    assert list(bucket.files()) == ["a.txt"]
