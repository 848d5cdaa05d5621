"""Logistic regression by Newton's method."""

from __future__ import annotations

import numpy as np

from eval.reference import Floats

_MAX_STEPS = 60


def chances_of(features: Floats, solution: Floats) -> Floats:
    """Return the chance of each row."""
    chances: Floats = 1 / (1 + np.exp(-np.clip(features @ solution, -30, 30)))
    return chances


def fit(features: Floats, outcomes: Floats, weights: Floats, ridge: Floats) -> Floats:
    """Return the solution, one number a column; `ridge` is the cost of each."""
    solution = np.zeros(features.shape[1])
    for _ in range(_MAX_STEPS):
        chances = chances_of(features, solution)
        slope = features.T @ (weights * (chances - outcomes)) + ridge * solution
        weighed = features * (weights * chances * (1 - chances))[:, None]
        step = np.linalg.solve(weighed.T @ features + np.diag(ridge), slope)
        solution -= step
        if np.abs(step).max() < 1e-7:
            break
    return solution
