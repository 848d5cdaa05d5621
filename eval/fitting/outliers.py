"""Find the bundled model's outlier channels on the background texts, and write those that ship.

The other half of `portal/embeddings/e5/graph.py`; to be run when the weights change.
"""

from __future__ import annotations

import numpy as np
import onnxruntime

from portal.embeddings.calibration import background
from portal.embeddings.e5 import FLOAT32, E5Encoder, graph
from portal.embeddings.e5.encoder import weights_path
from portal.embeddings.e5.weights import Matrix, Weights

_TEXTS_A_LANGUAGE = 6
_PERCENTILE, _POWER = 95, 0.7
_ACTIVATED = 16


def main() -> None:
    weights = Weights(weights_path())
    layers = range(weights.shape.layers)
    attention = ["emb.ln.out", *(f"l{layer}.oln.out" for layer in layers[:-1])]
    inner = [f"l{layer}.aln.out" for layer in layers]
    activated = [f"l{layer}.activated" for layer in layers]
    greatest = _greatest(weights, [*attention, *inner, *activated])
    np.savez_compressed(
        graph.OUTLIERS,
        attention=np.stack([_divisors(greatest[name]) for name in attention]),
        inner=np.stack([_divisors(greatest[name]) for name in inner]),
        activated=np.stack(
            [np.sort(np.argsort(greatest[name])[-_ACTIVATED:]) for name in activated]
        ).astype(np.int16),
    )
    print(f"{graph.OUTLIERS} {graph.OUTLIERS.stat().st_size} bytes")


def _divisors(greatest: Matrix) -> Matrix:
    excess = greatest / np.percentile(greatest, _PERCENTILE)
    return np.maximum(1.0, excess**_POWER).astype(np.float16)


def _greatest(weights: Weights, names: list[str]) -> dict[str, Matrix]:
    """Return the max magnitude of each channel of these outputs over all texts and tokens."""
    session = onnxruntime.InferenceSession(graph.build(weights, FLOAT32, names))
    encoder = E5Encoder(FLOAT32)
    found = {name: np.zeros(1, np.float32) for name in names}
    for language in background.LANGUAGES:
        for text in background.texts(language, "passages")[:_TEXTS_A_LANGUAGE]:
            embedded = encoder.embedded(encoder.tokens(text, is_question=False))
            for name, values in zip(
                names, session.run(names, {graph.INPUT: embedded}), strict=True
            ):
                found[name] = np.maximum(found[name], np.abs(values[0]).max(axis=0))
    return found


if __name__ == "__main__":
    main()
