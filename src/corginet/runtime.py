"""What this machine offers torch, and the process-wide settings that training wants."""

from __future__ import annotations

import ctypes
import functools
import platform
import resource

import torch


@functools.cache
def fast_bfloat16() -> bool:
    """Whether bf16 matrix products run in hardware here; elsewhere they are slower than fp32."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and _has_flag("avx512_bf16")


@functools.cache
def _has_flag(flag: str) -> bool:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            return any(flag in line for line in file if line.startswith("flags"))
    except OSError:
        return False


@functools.cache
def keep_memory() -> bool:
    """Let glibc reuse large blocks instead of returning them to the kernel after each step.

    Page-faulting the same memory again made large gathers 8 times slower; the price is that
    the process keeps its peak. Answers whether the setting took.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    m_trim_threshold, m_mmap_max = -1, -4
    return bool(mallopt(m_mmap_max, 0) and mallopt(m_trim_threshold, 2**31 - 1))


def peak_gb() -> float:
    """The most memory this process has held, in GB."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            peak = next(line for line in file if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024 / 1e9
    except (OSError, StopIteration):
        pass  # elsewhere than on Linux, where the number below holds the parent's peak too
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def versions() -> dict[str, str]:
    """What produced a result."""
    import numpy

    import corginet

    return {
        "corginet": corginet.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
    }
