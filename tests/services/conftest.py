"""Fixtures: real servers, started once for the tests of a process. GRAPHPREP_REQUIRE_SERVICES=1: one that is missing fails."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from servers import NotThereError, hdfs_server, s3_server


def _give_up(reason: str) -> None:
    if os.environ.get("GRAPHPREP_REQUIRE_SERVICES", "0") not in ("", "0"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory) -> Iterator[str]:
    """The URL of a real S3 server."""
    from remote_places import ACCESS_KEY, SECRET_KEY

    with contextlib.ExitStack() as stack:
        try:
            if find_spec("s3fs") is None:
                raise NotThereError("s3fs is not installed: pip install 'graphprep[s3]'")
            url = stack.enter_context(s3_server(tmp_path_factory.mktemp("ceph"), ACCESS_KEY, SECRET_KEY))
        except NotThereError as error:
            _give_up(str(error))
        yield url


@pytest.fixture(scope="session")
def hdfs_url(tmp_path_factory) -> Iterator[str]:
    """The URL of the root of a real HDFS."""
    with contextlib.ExitStack() as stack:
        try:
            if find_spec("hdfs_native") is None:
                raise NotThereError("hdfs-native is not installed: pip install 'graphprep[hdfs]'")
            url = stack.enter_context(hdfs_server(tmp_path_factory.mktemp("hadoop")))
        except NotThereError as error:
            _give_up(str(error))
        yield url
