"""Unpacks members of a wheel: from a file, or from the package index, where only the parts that are needed are downloaded.

usage: wheel_members.py FILE.whl|NAME==VERSION[@PYTHON] FOLDER PATTERN...

PYTHON is a tag such as cp311, for wheels that are run; without it any wheel of the version will do. A pattern after ! leaves members out.
The index is pip's (PIP_INDEX_URL or `pip config`). An index that serves no byte ranges costs the whole download, by `pip download`.
"""
import fnmatch
import html
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile

BLOCK = 1 << 20
TIMEOUT_S = 60


class NoRanges(Exception):
    """The index cannot be read this way; pip may still manage."""


class RemoteFile(io.RawIOBase):
    """A file behind a URL, read in blocks as they are needed."""

    def __init__(self, url):
        self.url, self.at, self.blocks = url, 0, {}
        self.size = int(self._get("bytes=0-0").headers["Content-Range"].rsplit("/", 1)[1])

    def _get(self, span):
        answer = urllib.request.urlopen(urllib.request.Request(self.url, headers={"Range": span}), timeout=TIMEOUT_S)
        if answer.status != 206:
            raise NoRanges(f"{self.url}: no byte ranges (status {answer.status})")
        return answer

    def _block(self, index):
        if index not in self.blocks:
            start = index * BLOCK
            self.blocks[index] = self._get(f"bytes={start}-{min(start + BLOCK, self.size) - 1}").read()
        return self.blocks[index]

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def read(self, size=-1):
        end = self.size if size < 0 else min(self.at + size, self.size)
        parts = []
        while self.at < end:
            index, skip = divmod(self.at, BLOCK)
            parts.append(self._block(index)[skip:skip + end - self.at])
            self.at += len(parts[-1])
        return b"".join(parts)


def index_url():
    if "PIP_INDEX_URL" in os.environ:
        return os.environ["PIP_INDEX_URL"]
    configured = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    return configured.stdout.strip() or "https://pypi.org/simple"


def wheel_url(name, version, python):
    """A wheel of that version for x86-64 Linux or any machine, of a Python tag or of any."""
    page = f"{index_url().rstrip('/')}/{name}/"
    text = urllib.request.urlopen(page, timeout=TIMEOUT_S).read().decode()
    stem = f"{name.replace('-', '_')}-{version}-"
    for link in re.findall(r'href="([^"]+)"', text):
        url = urllib.parse.urljoin(page, html.unescape(link)).split("#")[0]
        file = urllib.parse.unquote(url.rsplit("/", 1)[1])
        if file.startswith(f"{stem}{python}") and (file.endswith("-any.whl") or ("linux" in file and file.endswith("x86_64.whl"))):
            return url
    raise NoRanges(f"{page}: no wheel {stem}*")


def unpack(file, folder, patterns):
    with zipfile.ZipFile(file) as wheel:
        without = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        members = [name for name in wheel.namelist() if not any(fnmatch.fnmatch(name, pattern) for pattern in without)]
        for pattern in (pattern for pattern in patterns if not pattern.startswith("!")):
            names = fnmatch.filter(members, pattern)
            if not names:
                sys.exit(f"the wheel holds no {pattern}")
            for name in names:
                wheel.extract(name, folder)
            print(f"{len(names)} of {pattern}")


def main():
    source, folder, patterns = sys.argv[1], sys.argv[2], sys.argv[3:]
    if source.endswith(".whl"):
        return unpack(source, folder, patterns)
    source, _, python = source.partition("@")
    name, version = source.split("==")
    try:
        remote = RemoteFile(wheel_url(name, version, f"{python}-" if python else ""))
        unpack(remote, folder, patterns)
        print(f"{source}: read {len(remote.blocks)} of {remote.size / 2**20:.0f} MB")
    except (NoRanges, urllib.error.URLError, OSError, KeyError, zipfile.BadZipFile) as reason:
        print(f"{source}: {reason}; downloading the whole wheel", flush=True)
        with tempfile.TemporaryDirectory(dir=pathlib.Path(folder).parent) as whole:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-cache-dir", "--no-deps", "--pre", "-d", whole, source]
            if subprocess.run(pip).returncode:
                sys.exit(f"{source}: pip download failed")
            (file,) = pathlib.Path(whole).glob("*.whl")
            unpack(file, folder, patterns)


if __name__ == "__main__":
    main()
