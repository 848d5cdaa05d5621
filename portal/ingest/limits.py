"""How much one file may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """`timeout_s` is wall and processor time; `memory_mb` is the PDF reader's address space."""

    max_pages: int = 5_000
    max_characters: int = 10_000_000
    timeout_s: float = 120
    memory_mb: int = 1_024
