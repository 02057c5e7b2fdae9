"""Statuses of the library as exceptions, one class for each family of include/flydsl_aot/status.h."""

from __future__ import annotations


class Error(RuntimeError):
    """A call that the library refused or could not do. `status` is its number, `name` the enumerator's name without prefix;
    the text is the library's own: the argument, the value seen, what is allowed."""

    def __init__(self, status: int, name: str, message: str):
        super().__init__(f"{name}: {message}" if message else name)
        self.status = status
        self.name = name


class InvalidArgument(Error, ValueError):
    """1xx: the arguments contradict the documentation. Nothing was touched or launched."""


class Unsupported(Error, NotImplementedError):
    """2xx: valid arguments, but nothing here implements them. Nothing was touched or launched."""


class ArchiveError(Error):
    """3xx: the kernel archive is missing, damaged, or of another build."""


class DeviceError(Error):
    """4xx: no device runtime, no device, no memory, or a fault on the device."""


class HostError(Error):
    """5xx: no host memory, or a bug in the library."""


_FAMILIES = {1: InvalidArgument, 2: Unsupported, 3: ArchiveError, 4: DeviceError, 5: HostError}


def error_of(status: int, name: str, message: str) -> Error:
    """The exception for a status that is not 0."""
    return _FAMILIES.get(status // 100, Error)(status, name, message)
