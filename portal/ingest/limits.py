"""Limits on reading one file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits of a reader process.

    `timeout_s` is wall and processor time, `memory_mb` address space. OCR of scanned pages has
    higher limits.
    """

    max_pages: int = 5_000
    max_characters: int = 10_000_000
    timeout_s: float = 120
    memory_mb: int = 768
    ocr_timeout_s: float = 1_800
    ocr_memory_mb: int = 4_096
