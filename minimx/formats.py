"""What a file is that some reader was given and cannot read: by its first bytes, and what opens it.

Readers put `looks_like` at the end of their error: who opens the wrong one of two files is told which is which. Nothing is read this way.
"""

from __future__ import annotations

import re
from typing import Any

HEAD = 512  # bytes that `looks_like` wants to see

#: How files begin, and what is to be said of them. The first that fits counts.
FORMATS: tuple[tuple[bytes, str], ...] = (
    (rb"\x93NUMPY", "an array of NumPy (.npy): numpy.load opens it, and nd.array() makes an NDArray of it"),
    (rb"PK\x03\x04.{26,60}\.npy", "arrays of NumPy (.npz): numpy.load opens it, and nd.array() makes an NDArray of each"),
    (
        rb"PK\x03\x04.{26,200}(/data\.pkl|/version|/byteorder)",
        "a file of PyTorch: torch.load opens it; nd.array(tensor.numpy()) converts",
    ),
    (rb"PK\x03\x04", "a zip archive: unpack it first"),
    (
        rb"\x80[\x02-\x05]",
        "a pickle, which can run anything and which nothing here reads; pickle.load, if you trust who wrote it",
    ),
    (rb".{8}\{\s*\"", "a safetensors file: safetensors.numpy.load_file opens it, and nd.array() makes an NDArray of each array"),
    (rb"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes it: h5py opens it"),
    (rb"\x1f\x8b|BZh|\xfd7zXZ", "a compressed file: unpack it first"),
    (rb".{257}ustar", "a tar archive: unpack it first"),
    (rb"\x89PNG\r\n|\xff\xd8\xff|GIF8|RIFF.{4}WEBP", "a picture: mx.image.imread opens it"),
    (rb"\x12\x01(\x00){14}", "a file of arrays: nd.load opens it, and a network's load_parameters"),
    (rb"\n\x23\xd7\xce", "a file of records: mx.recordio.MXRecordIO and mx.io.ImageRecordIter read it"),
    (rb"\x00\x00[\x08\x09\x0b-\x0e][\x01-\x04]", "an IDX file, as MNIST's: mx.io.MNISTIter reads it"),
    (rb"\x08[\x01-\x20]\x12.{1,40}?[\x1a\x22\x3a]", "an ONNX file: mx.contrib.onnx.import_model reads it"),
    (rb"version https://git-lfs", "what Git LFS leaves in a file's place: `git lfs pull` brings the file itself"),
    (rb"\s*<(!doctype html|!DOCTYPE html|html|\?xml)", "a page of the web: the address that it came from has not the file"),
    (rb"\s*\{.*\"(nbformat|cell_type)\"", "a Jupyter notebook"),
    (rb"\s*[\{\[]", "JSON: sym.load opens it if it is a graph, such as net-symbol.json"),
)


def looks_like(head: Any, own: str = "") -> str:
    """ "; it looks like ..., which ...", or nothing for bytes that say nothing.

    **Args** `head`: the first bytes of a file, HEAD of them if there are so many. `own`: a word of what would be said of the reader's own
    files.
    """
    begin = bytes(head[:HEAD])
    if not begin:
        return "; the file is empty"
    text = next((text for start, text in FORMATS if re.match(start, begin, re.DOTALL)), "")
    return f"; it looks like {text}" if text and not (own and own in text) else ""
