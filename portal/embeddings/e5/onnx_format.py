"""A writer of ONNX networks, a protobuf format.

The package `onnx` takes 31 MB; a network of nodes and constants needs these few messages of
onnx.proto3. Numbers of fields and types are those of https://github.com/onnx/onnx (IR version 10).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 10
_VARINT, _BYTES, _FLOAT = 0, 2, 5  # Wire types of protobuf.
_ELEMENT_TYPES = {"float32": 1, "int8": 3, "int64": 7}
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2


def node(
    operator: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    *,
    domain: str,
    options: Mapping[str, float],
) -> bytes:
    """Return a NodeProto."""
    parts = [_bytes(1, name) for name in inputs]
    parts += [_bytes(2, name) for name in outputs]
    parts.append(_bytes(4, operator))
    parts += [_bytes(5, _attribute(name, value)) for name, value in sorted(options.items())]
    return b"".join([*parts, _bytes(7, domain)])


def tensor(name: str, values: NDArray[np.generic]) -> bytes:
    """Return a TensorProto."""
    dimensions = [_integer(1, size) for size in values.shape]
    kind = _integer(2, _ELEMENT_TYPES[values.dtype.name])
    little_endian = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return b"".join([*dimensions, kind, _bytes(8, name), _bytes(9, little_endian.tobytes())])


def model(
    name: str,
    nodes: Sequence[bytes],
    constants: Sequence[bytes],
    *,
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str]],
    opsets: Mapping[str, int],
) -> bytes:
    """Return a ModelProto.

    `inputs` and `outputs` are shapes of float32 by name, in which a name means a variable
    size; `opsets` are versions of operators by domain.
    """
    graph = [_bytes(1, node_bytes) for node_bytes in nodes]
    graph.append(_bytes(2, name))
    graph += [_bytes(5, constant) for constant in constants]
    graph += [_bytes(11, _value(name, shape)) for name, shape in inputs.items()]
    graph += [_bytes(12, _value(name, shape)) for name, shape in outputs.items()]
    versions = [
        _bytes(8, _bytes(1, domain) + _integer(2, version)) for domain, version in opsets.items()
    ]
    return b"".join([_integer(1, IR_VERSION), _bytes(7, b"".join(graph)), *versions])


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _bytes(1, name) + _integer(3, value) + _integer(20, _ATTRIBUTE_INT)
    number = _tag(2, _FLOAT) + struct.pack("<f", value)
    return _bytes(1, name) + number + _integer(20, _ATTRIBUTE_FLOAT)


def _value(name: str, shape: Sequence[int | str]) -> bytes:
    sizes = [
        _bytes(1, _integer(1, size) if isinstance(size, int) else _bytes(2, size)) for size in shape
    ]
    kind = _integer(1, _ELEMENT_TYPES["float32"]) + _bytes(2, b"".join(sizes))
    return _bytes(1, name) + _bytes(2, _bytes(1, kind))


def _bytes(field: int, value: bytes | str) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return _tag(field, _BYTES) + _varint(len(content)) + content


def _integer(field: int, value: int) -> bytes:
    # Protobuf writes a negative number in the ten bytes of its two's complement.
    return _tag(field, _VARINT) + _varint(value & (2**64 - 1))


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 2**7:  # Seven bits per byte, the lowest first; the eighth says that more follow.
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
