"""Real servers on 127.0.0.1, with folders of their own, ended with the block that starts them: Ceph's S3 gateway, and HDFS."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

HADOOP = Path(__file__).resolve().parents[2] / ".venv/services/hadoop"
_MOST_S = 120  # to come up in
_JAVA = (
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED", "--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED"),
    "-Xmx256m",
)
_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class NotThereError(Exception):
    """A server that is not installed, or did not come up."""


def missing_s3() -> str:
    """Say what is missing for the S3 server, an empty text where nothing is."""
    missing = [name for name in ("radosgw", "ceph-mon", "ceph-osd", "ceph", "radosgw-admin") if shutil.which(name) is None]
    return f"{', '.join(missing)} not installed: make services" if missing else ""


def missing_hdfs() -> str:
    """Say what is missing for HDFS, an empty text where nothing is."""
    if shutil.which("java") is None:
        return "java not installed: make services"
    return "" if list(HADOOP.glob("hadoop-hdfs-*.jar")) else f"no JARs of Hadoop in {HADOOP}: make services"


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Daemons:
    """Processes in the foreground, each with a log in ``folder``; all are killed by ``close``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a process, which also ends when this one is killed."""
        dies = ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()
        with self._log(name).open("wb") as log:
            started = subprocess.Popen((*dies, *command), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._started.append((name, started))

    def do(self, name: str, command: Sequence[str]) -> None:
        """Run a process to its end."""
        with self._log(name).open("wb") as log:
            try:
                subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=True, timeout=_MOST_S)
            except (subprocess.SubprocessError, OSError) as error:
                raise NotThereError(f"{name}: {error}: {self._tail(name)}") from None

    def wait(self, name: str, is_up: Callable[[], bool]) -> None:
        """Wait until a server answers. Raises NotThereError where one of the processes has ended, or after two minutes."""
        deadline = time.monotonic() + _MOST_S
        while True:
            with contextlib.suppress(OSError, ValueError, LookupError):
                if is_up():
                    return
            for started, process in self._started:
                if process.poll() is not None:
                    raise NotThereError(f"{started} ended with {process.returncode}: {self._tail(started)}")
            if time.monotonic() > deadline:
                raise NotThereError(f"{name} did not come up in {_MOST_S} s: {self._tail(name)}")
            time.sleep(0.1)

    def close(self) -> None:
        """Kill all of them."""
        for _, process in reversed(self._started):
            process.kill()
            process.wait()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _tail(self, name: str) -> str:
        return self._log(name).read_text(errors="replace")[-2000:]


@contextlib.contextmanager
def _daemons(folder: Path) -> Iterator[Daemons]:
    daemons = Daemons(folder)
    try:
        yield daemons
    finally:
        daemons.close()


def _answers(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()


# ---- S3


@contextlib.contextmanager
def s3_server(folder: Path, access_key: str, secret_key: str) -> Iterator[str]:
    """Run Ceph's RADOS Gateway, its data in memory, with one user; give its URL. Raises NotThereError."""
    if missing_s3():
        raise NotThereError(missing_s3())
    mon, rgw = free_ports(2)
    conf = folder / "ceph.conf"
    fsid = str(uuid.uuid4())
    for name in ("mon", "osd", "run"):
        (folder / name).mkdir()
    conf.write_text(_CEPH.format(folder=folder, fsid=fsid, mon=mon, rgw=rgw))
    at = ("-c", str(conf))
    with _daemons(folder) as daemons:
        names = ("--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{mon}]", str(folder / "monmap"))
        daemons.do("monmaptool", ("monmaptool", "--create", *names))
        daemons.do("mkfs-mon", ("ceph-mon", *at, "--mkfs", "-i", "a", "--monmap", str(folder / "monmap")))
        daemons.start("mon", ("ceph-mon", *at, "-i", "a", "-f"))
        osd = str(uuid.uuid4())
        daemons.do("osd-new", ("ceph", *at, "--connect-timeout", "60", "osd", "new", osd))
        daemons.do("mkfs-osd", ("ceph-osd", *at, "-i", "0", "--mkfs", "--osd-uuid", osd))
        daemons.start("osd", ("ceph-osd", *at, "-i", "0", "-f"))
        daemons.start("rgw", ("radosgw", *at, "-f", "-n", "client.rgw"))
        user = ("--uid", "tests", "--display-name", "tests", "--access-key", access_key, "--secret-key", secret_key)
        daemons.do("user", ("radosgw-admin", *at, "-n", "client.rgw", "user", "create", *user))
        url = f"http://127.0.0.1:{rgw}"
        daemons.wait("rgw", lambda: b"ListAllMyBucketsResult" in _answers(url))
        yield url


_CEPH = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon}]
mon initial members = a
public network = 127.0.0.0/8
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 2147483648
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}/run
admin socket = {folder}/run/$name.asok
log file = {folder}/$name.ceph.log
[client.rgw]
ms mon client mode = crc
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{rgw}
"""


# ---- HDFS


@contextlib.contextmanager
def hdfs_server(folder: Path) -> Iterator[str]:
    """Run a NameNode and a DataNode, and give the URL of their root. Raises NotThereError."""
    if missing_hdfs():
        raise NotThereError(missing_hdfs())
    name, name_http, data, data_http, data_ipc = free_ports(5)
    for web in ("hdfs", "datanode", "static"):  # pages that nobody looks at; the servers will not start without their folders
        (folder / "web/webapps" / web).mkdir(parents=True)
    settings = {
        "fs.defaultFS": f"hdfs://127.0.0.1:{name}",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "dfs.namenode.name.dir": f"file://{folder}/name",
        "dfs.datanode.data.dir": f"file://{folder}/data",
        "dfs.namenode.http-address": f"127.0.0.1:{name_http}",
        "dfs.datanode.address": f"127.0.0.1:{data}",
        "dfs.datanode.http.address": f"127.0.0.1:{data_http}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{data_ipc}",
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.webhdfs.enabled": "false",  # Jersey's server is not among the JARs
    }
    conf = folder / "conf"
    conf.mkdir()
    lines = [f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()]
    for file in ("core-site.xml", "hdfs-site.xml"):
        (conf / file).write_text(f"<configuration>{''.join(lines)}</configuration>")
    java = ("java", *_JAVA, f"-Dhadoop.log.dir={folder}", "-cp", f"{conf}:{folder}/web:{HADOOP}/*")
    with _daemons(folder) as daemons:
        daemons.do("format", (*java, _NAME_NODE, "-format", "-nonInteractive"))
        daemons.start("namenode", (*java, _NAME_NODE))
        daemons.start("datanode", (*java, _DATA_NODE))
        state = f"http://127.0.0.1:{name_http}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        daemons.wait("namenode", lambda: json.loads(_answers(state))["beans"][0]["NumLiveDataNodes"] == 1)
        yield f"hdfs://127.0.0.1:{name}"
