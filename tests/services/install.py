"""Install the servers that tests/services starts: Ceph's S3 gateway from Debian's packages, HDFS from the JARs of PySpark 2.4.

``python tests/services/install.py FOLDER`` puts what is no system package into FOLDER. What cannot be had is said, and the tests
that need it are skipped then, or fail where GRAPHPREP_REQUIRE_SERVICES=1 says that they must run.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_CEPH = ("radosgw", "ceph-mon", "ceph-osd")
_JAVA = "openjdk-17-jre-headless"
_PYSPARK = "pyspark==2.4.8"  # the last that carries Hadoop 2.7, whose client JAR has the servers in it
JARS = (
    *("hadoop-annotations-*", "hadoop-auth-*", "hadoop-common-*", "hadoop-hdfs-*", "htrace-core-*", "guava-14*", "jsr305-*"),
    *("commons-cli-*", "commons-codec-*", "commons-collections-*", "commons-configuration-*", "commons-io-*", "commons-lang-*"),
    *("commons-logging-*", "log4j-1*", "slf4j-*", "protobuf-java-*", "netty-*", "jetty-*", "leveldbjni-*", "javax.*"),
    *("jackson-core-asl-*", "jackson-mapper-asl-*", "jersey-*", "xercesImpl-*", "xmlenc-*"),
)


def main(folder: Path) -> None:
    """Install what is missing."""
    missing = [name for name in _CEPH if shutil.which(name) is None]
    packages = (list(_CEPH) if missing else []) + ([] if shutil.which("java") else [_JAVA])
    if packages:
        install_packages(packages)
    if not list(folder.glob("hadoop/hadoop-hdfs-*.jar")):
        fetch_hadoop(folder / "hadoop")


def install_packages(packages: list[str]) -> None:
    """Install Debian's packages, without those that are only recommended."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"note: {' '.join(packages)} are not installed: that takes apt-get and root")
        return
    print(f"installing {' '.join(packages)} ...", flush=True)
    quiet = {"env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "-qq", "update"], check=False, **quiet)
    done = subprocess.run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages], check=False, **quiet)
    if done.returncode:
        print(f"note: {' '.join(packages)} could not be installed")


def fetch_hadoop(folder: Path) -> None:
    """Take Hadoop's JARs out of PySpark's archive: 30 of its 220 MB."""
    print(f"fetching Hadoop's JARs out of {_PYSPARK} ...", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check"]
        build = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", scratch]
        subprocess.run([*pip, "install", "setuptools", "wheel"], check=False)
        done = subprocess.run([*pip, "download", *build, _PYSPARK], check=False)
        found = list(Path(scratch).glob("*.tar.gz"))
        if done.returncode or not found:
            print(f"note: {_PYSPARK} could not be fetched")
            return
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(found[0]) as archive:
            for member in archive:
                name = Path(member.name).name
                if "/deps/jars/" in member.name and any(fnmatch.fnmatch(name, f"{jar}.jar") for jar in JARS):
                    beside = folder / f".{name}"
                    with archive.extractfile(member) as source, beside.open("wb") as target:  # type: ignore[union-attr]
                        shutil.copyfileobj(source, target)
                    beside.rename(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
