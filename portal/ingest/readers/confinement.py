"""Confinement of the current process to reading its open files.

A parser that a hostile file has taken over keeps the rights of its process. So before a reader sees
a byte of a file, it gives up all but its open descriptors, its memory and its processor time:
another user if it was started as root, no new files, sockets or processes, no system calls but
those of reading, computing and ending. The layers are independent, since a kernel may lack some of
them. `docs/adr/0040-readers-without-privileges.md` explains each.

Linux only; elsewhere the resource limits remain. Imports nothing of the portal.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Callable

NOBODY = 65_534

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
# linux/sched.h
_CLONE_THREAD = 0x0001_0000
_CLONE_NEWIPC = 0x0800_0000
_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWNET = 0x4000_0000
# linux/capability.h
_CAPABILITY_VERSION_3 = 0x2008_0522
# linux/landlock.h
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_VERSION = 1
# The number of file access rights in each version of Landlock (ABI).
_LANDLOCK_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_LANDLOCK_NEWEST_FILE_RIGHTS = 16
_LANDLOCK_WITH_NETWORK, _LANDLOCK_WITH_SCOPES = 4, 6
# linux/seccomp.h, linux/bpf_common.h, linux/audit.h
_SECCOMP_SET_MODE_FILTER, _SECCOMP_ALL_THREADS = 1, 1
_ALLOW, _KILL, _REFUSE = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_LOAD, _RETURN, _IF_EQUAL, _IF_BITS = 0x20, 0x06, 0x15, 0x45
_CALL_NUMBER, _CALL_ARCHITECTURE, _CALL_FIRST_ARGUMENT = 0, 4, 16
_EPERM, _ENOSYS = 1, 38
_CLONE3 = 435
# By architecture: its audit number in the kernel, `seccomp`, `capset`, `clone`, and the calls a
# reader may make. No listed call opens, names or signals anything outside of the process.
_CALLS: dict[str, tuple[int, int, int, int, tuple[int, ...]]] = {
    "x86_64": (
        0xC000_003E, 317, 126, 56,
        (
            0, 1, 3, 5, 7, 8, 17, 19, 20,  # read, write, close, fstat, poll, lseek, pread64, ‥v
            9, 10, 11, 12, 25, 28,  # mmap, mprotect, munmap, brk, mremap, madvise
            13, 14, 15, 131,  # rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack
            24, 35, 96, 201, 202, 204, 228, 229, 230, 309,  # time, waiting, processors
            39, 63, 98, 99, 100, 102, 104, 107, 108, 110, 186,  # who and where am I
            218, 219, 273, 318, 324, 334,  # threads, getrandom, membarrier, rseq
            60, 231,  # exit, exit_group
        ),
    ),
    "aarch64": (
        0xC000_00B7, 277, 91, 220,
        (
            63, 64, 57, 80, 73, 62, 67, 65, 66,
            222, 226, 215, 214, 216, 233,
            134, 135, 139, 132,
            124, 101, 169, 98, 123, 113, 114, 115, 168,
            172, 160, 165, 179, 153, 174, 176, 175, 177, 173, 178,
            96, 128, 99, 278, 283, 293,
            93, 94,
        ),
    ),
}  # fmt: skip


def leave_network() -> bool:
    """Move to a network without interfaces, if the kernel allows it; return whether it did. Call
    this first: a process with threads cannot."""
    kinds = _CLONE_NEWNET | _CLONE_NEWIPC
    if os.geteuid() != 0:
        kinds |= _CLONE_NEWUSER
    return _succeeds(lambda libc: libc.unshare(kinds))


def confine() -> list[str]:
    """Give up everything but the open descriptors 0 to 2; return the layers that hold. These are
    `user`, `no_new_privs`, `landlock`, `limits` and `seccomp`. Load everything the process needs
    before calling this."""
    layers = {
        "user": _drop_root,
        "no_new_privs": _renounce_privileges,
        "landlock": _restrict_by_landlock,
        "limits": _forbid_new_resources,
        # Last, because it blocks the calls that the others use.
        "seccomp": _filter_system_calls,
    }
    return [name for name, apply in layers.items() if apply()]


def _succeeds(call: Callable[[ctypes.CDLL], int]) -> bool:
    if sys.platform != "linux":
        return False
    try:
        return call(ctypes.CDLL(None, use_errno=True)) == 0
    except (OSError, AttributeError):
        return False


def _system_call(libc: ctypes.CDLL, *arguments: int | bytes | None) -> int:
    # A Python int would be passed as 32 bits, and the kernel reads 64.
    wide = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    return int(libc.syscall(*wide))


def _drop_root() -> bool:
    """Switch from root to a user who owns nothing; other users stay as they are."""
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except (OSError, AttributeError):
        return False
    return True


def _renounce_privileges() -> bool:
    """Drop capabilities and privilege gains, forbid tracing, and end with the parent process."""
    if platform.machine() in _CALLS:
        header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
        capset = _CALLS[platform.machine()][2]
        _succeeds(lambda libc: _system_call(libc, capset, header, bytes(24)))
    _succeeds(lambda libc: libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0))
    # A change of user resets it.
    _succeeds(lambda libc: libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0))
    return _succeeds(lambda libc: libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def _restrict_by_landlock() -> bool:
    """Deny access to files, directories, ports, abstract sockets and other processes' signals."""

    def restrict(libc: ctypes.CDLL) -> int:
        abi = _system_call(libc, _LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
        if abi < 1:
            return -1
        files = (1 << _LANDLOCK_FILE_RIGHTS.get(abi, _LANDLOCK_NEWEST_FILE_RIGHTS)) - 1
        rules = struct.pack("=Q", files)
        if abi >= _LANDLOCK_WITH_NETWORK:
            rules += struct.pack("=Q", 0b11)  # bind, connect
        if abi >= _LANDLOCK_WITH_SCOPES:
            rules += struct.pack("=Q", 0b11)  # abstract sockets, signals
        ruleset = _system_call(libc, _LANDLOCK_CREATE_RULESET, rules, len(rules), 0)
        if ruleset < 0:
            return -1
        try:
            return _system_call(libc, _LANDLOCK_RESTRICT_SELF, ruleset, 0)
        finally:
            os.close(ruleset)

    return _succeeds(restrict)


def _forbid_new_resources() -> bool:
    """Forbid new descriptors, processes and threads, and writing to files."""
    try:
        os.closerange(3, 4_096)  # Descriptors opened while loading.
        for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE):
            resource.setrlimit(kind, (0, 0))
    except (OSError, ValueError):
        return False
    return True


def _filter_system_calls() -> bool:
    """Refuse every system call that is not in the list, in all threads."""
    if platform.machine() not in _CALLS or sys.maxsize < 1 << 32:
        return False
    architecture, seccomp, _, clone, allowed = _CALLS[platform.machine()]
    program = _filter(architecture, clone, allowed)
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and their address.
    fprog = struct.pack("=HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    return _succeeds(
        lambda libc: _system_call(
            libc, seccomp, _SECCOMP_SET_MODE_FILTER, _SECCOMP_ALL_THREADS, fprog
        )
    )


def _filter(architecture: int, clone: int, allowed: tuple[int, ...]) -> bytes:
    """Return a program of struct sock_filter: what to do, how far to jump, and a value."""

    def instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    count = len(allowed)
    return b"".join([
        instruction(_LOAD, _CALL_ARCHITECTURE),
        instruction(_IF_EQUAL, architecture, yes=1),
        instruction(_RETURN, _KILL),
        instruction(_LOAD, _CALL_NUMBER),
        *(
            instruction(_IF_EQUAL, number, yes=count - index + 5)
            for index, number in enumerate(allowed)
        ),
        # glibc tries clone3 first, whose flags a filter cannot read, and falls back to clone.
        instruction(_IF_EQUAL, _CLONE3, yes=3),
        instruction(_IF_EQUAL, clone, yes=0, no=3),
        instruction(_LOAD, _CALL_FIRST_ARGUMENT),
        instruction(_IF_BITS, _CLONE_THREAD, yes=2, no=1),
        instruction(_RETURN, _REFUSE | _ENOSYS),
        instruction(_RETURN, _REFUSE | _EPERM),
        instruction(_RETURN, _ALLOW),
    ])  # fmt: skip
