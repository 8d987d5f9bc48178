"""Drivers: which fsspec file system serves a URL, with which options, and what to install where there is none."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.shown.texts import display_url, keep_secret
from graphprep.storage.faults import plain_words, storage_error
from graphprep.storage.retries import Retrying

LOCAL_PROTOCOLS = ("file", "local")
URL = re.compile(r"([A-Za-z][A-Za-z0-9+._-]*)((?:::[A-Za-z][A-Za-z0-9+._-]*)*)://")
# fsspec knows these by several names; an option given for one of them holds for all.
_ALIASES = {"s3a": "s3", "gs": "gcs", "https": "http", "az": "abfs", "abfss": "abfs", "viewfs": "hdfs"}
_EXTRAS = {name: name for name in ("http", "s3", "hdfs", "webhdfs")} | {"sftp": "sftp", "ssh": "sftp", "smb": "smb"}
_PACKAGES = {"s3fs": "s3", "hdfs-native": "hdfs", "hdfs_native": "hdfs", "aiohttp": "http", "requests": "http"}
_INSTALLS: dict[str | None, str] = {
    "http": "aiohttp requests",
    "s3": "s3fs",
    "hdfs": "hdfs-native",
    "webhdfs": "requests",
    "sftp": "paramiko",
    "smb": "smbprotocol",
}
_SECRET = re.compile(r"secret|passw|credential|signature|connection_string|(key|token|sas)$", re.IGNORECASE)
_HADOOP = frozenset({"HADOOP_CONF_DIR", "HADOOP_HOME"})
_HDFS_ATTEMPTS = "dfs.client.failover.max.attempts"
# File systems that show a file as soon as it is created, and rename a folder in one step.
_FOLDER_PROTOCOLS = frozenset({"hdfs", "webhdfs", "arrow_hdfs", "sftp", "ssh", "smb"})


# What is written before paths by mistake; "user:item.csv" is a file.
_SCHEMES = frozenset({"http", "https", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hdfs", "viewfs", "webhdfs", "file"})


def refuse_malformed(url: str) -> None:
    """Raise UsageError for what is meant as a URL, is none, and would be the path of a local file: ``http:/host/x``."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(/?)(?=[^:/])", url)
    if found is None or URL.match(url) or Path(url).exists():
        return
    scheme, path = found[1], f"a path of this name is ./{display_url(url)}"
    if scheme.lower() in _SCHEMES:
        right = f"{scheme}{':///' if scheme.lower() == 'file' else '://'}{url[found.end() :]}"
        fix = f"write {display_url(right)}; {path}"
        raise UsageError("this is no URL: :// follows the scheme", place=display_url(url), fix=fix)
    if found[2] or "://" in url:
        fix = f"name a file, or a URL such as s3://bucket/key; {path}"
        raise UsageError(f"there is no driver for {scheme}:", place=display_url(url), fix=fix)


def protocol_of(url: str) -> str:
    """Return the outermost protocol of a URL by its first name (``http`` for ``https``), ``file`` for a path."""
    match = URL.match(url)
    return _ALIASES.get(match[1], match[1]) if match else "file"


def protocols_of(url: str) -> list[str]:
    """Return the protocols of a URL as written, outermost first; several for a chain.

    Chains: ``simplecache::s3://bucket/a.csv``, ``zip://a.csv::s3://bucket/a.zip``.
    """
    match = URL.match(url)
    protocols = [match[1], *match[2].split("::")[1:]] if match else []
    inner = [found[1] for found in map(URL.match, url.split("::")[1:]) if found]
    return list(dict.fromkeys([*protocols, *inner]))


def renames_folders(url: str) -> bool:
    """Return whether the place has real folders: files are seen while they are written, and a folder is renamed at once."""
    return protocol_of(url) in _FOLDER_PROTOCOLS


class Drivers:
    """Opens the fsspec file systems of URLs with ``options`` as ``parse_options`` returns them, and holds on to them."""

    def __init__(self, options: Mapping[str, dict[str, Any]]) -> None:
        self._options = options
        self._met: dict[int, Any] = {}

    def open(self, url: str) -> tuple[Any, str]:
        """Return the file system of a URL, and the path in it. What it remembers of listings is forgotten the first time.

        Raises UsageError where the driver is not installed or not known.
        """
        with plain_words(url):
            from fsspec.core import url_to_fs

            for protocol in protocols_of(url):
                if len(protocol) == 1:  # fsspec takes it for a drive of Windows, and the URL for a path
                    raise _unknown_protocol(protocol, url)
            try:
                fs, target = url_to_fs(url, **self.options_for(url))
            except (ImportError, ValueError) as error:
                raise _missing_driver(error, url) from error
            except OSError as error:
                if any(_ALIASES.get(one, one) == "hdfs" for one in protocols_of(url)):  # fsspec's own way there needs a JVM
                    raise _missing_driver(ImportError("install hdfs-native"), url) from error
                raise
            if id(fs) not in self._met:  # drivers are shared by all runs of a process
                self._met[id(fs)] = fs if protocol_of(url) == "memory" else Retrying(fs)
                fs.invalidate_cache()
        return self._met[id(fs)], target

    def options_for(self, url: str) -> dict[str, Any]:
        """Return the driver's options for a URL; of a chain, those of each protocol under its name."""
        protocols = protocols_of(url)
        chosen: dict[str, Any] = dict(self._options.get("", {}))
        for protocol in protocols:
            options = self._options.get(_ALIASES.get(protocol, protocol))
            if options and len(protocols) == 1:
                chosen.update(options)
            elif options:
                chosen[protocol] = options
        if [_ALIASES.get(one, one) for one in protocols] == ["hdfs"] and not _HADOOP.intersection(os.environ):
            chosen.setdefault(_HDFS_ATTEMPTS, "4")  # hdfs-native would try for minutes; a cluster's settings know better
        return chosen


def parse_options(options: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Sort ``[protocol.]key`` options by protocol (``""``: all). Secret values are never printed from here on."""
    parsed: dict[str, dict[str, Any]] = {}
    for key, text in options.items():
        protocol, dot, rest = key.partition(".")
        *folders, name = (rest if dot else key).split(".")
        if dot and _ALIASES.get(protocol, protocol) == "hdfs":  # Hadoop's own settings have dots in their names
            folders, name = [], rest
        level = parsed.setdefault(_ALIASES.get(protocol, protocol) if dot else "", {})
        for folder in folders:
            level = level.setdefault(folder, {})
        if isinstance(level.get(name), dict):
            raise UsageError(f"the storage option {key!r} has options of its own", fix="give the option or those in it")
        if _SECRET.search(name):
            keep_secret(text)
            level[name] = text  # a key of digits is no number
        else:
            level[name] = text if "." in name else _parse_value(text)
    return parsed


def _parse_value(text: str) -> bool | int | float | str:
    """Read ``true``, ``false`` and decimal numbers; anything else is text."""
    import json

    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return text


def _missing_driver(error: Exception, url: str) -> UsageError | StorageError:
    place = display_url(url)
    if isinstance(error, ImportError):
        words = [word.strip("\"'.,") for word in str(error).split()]
        package = next((after for word, after in itertools.pairwise(words) if word.lower() == "install"), "")
        protocol = _protocol_without_driver(url, package)
        extra = _PACKAGES.get(package) or _EXTRAS.get(_ALIASES.get(protocol, protocol))
        fix = f"pip install {_INSTALLS.get(extra, package or protocol)}"
        return UsageError(f"the driver for {protocol}:// is not installed", place=place, fix=fix)
    if "not known: viewfs" in str(error):
        return _missing_driver(ImportError("install hdfs-native"), url)
    if "not known" in str(error):
        named = re.search(r"not known: (\S+)", str(error))
        protocol = named[1] if named else protocols_of(url)[-1]
        return _unknown_protocol(protocol, url)
    return storage_error(error, url)


def _unknown_protocol(protocol: str, url: str) -> UsageError:
    fix = "check the spelling: http://, https://, s3://, hdfs:// and memory:// are known, and whatever else fsspec has"
    return UsageError(f"there is no driver for {protocol}://", place=display_url(url), fix=fix)


def _protocol_without_driver(url: str, package: str) -> str:
    """Return which protocol of a chain a package that is not installed serves."""
    protocols = protocols_of(url)
    extra = _PACKAGES.get(package)
    return next((one for one in protocols if extra and _ALIASES.get(one, one) == extra), protocols[-1])
