"""Writes tests/data/io: files of records, and what the iterators of MXNet 1.9.1 make of them.

    python tests/record_io.py                        writes the files of records, with minimx and Pillow
    PYTHON_THAT_HAS_MXNET tests/record_io.py values  writes images.npz and boxes.npz, with MXNet

The cases are in tests/io/image_cases.py. The second step takes the files of the first one as they are.
"""

import io
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "data", "io")
sys.path.insert(0, os.path.join(HERE, "io"))

import image_cases as cases  # noqa: E402  # found by the line before


def encoded(pixels, kind):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file, kind, quality=90)
    return file.getvalue()


def write_records():
    from minimx import recordio

    for name, channels in cases.CHANNELS.items():
        with recordio.MXIndexedRecordIO(os.path.join(FOLDER, f"{name}.idx"), os.path.join(FOLDER, f"{name}.rec"), "w") as file:
            for number, pixels in enumerate(cases.pixels(channels)):
                header = recordio.IRHeader(0, float(number), number + 100, 0)
                file.write_idx(number, recordio.pack(header, encoded(pixels, "JPEG" if name == "jpeg" else "PNG")))
    with recordio.MXRecordIO(os.path.join(FOLDER, "boxes.rec"), "w") as file:
        for number, (pixels, labels) in enumerate(zip(cases.pixels(3), cases.boxes())):
            file.write(recordio.pack(recordio.IRHeader(0, labels, number + 100, 0), encoded(pixels, "PNG")))


def record_values():
    import mxnet

    common = {"batch_size": len(cases.SIZES), "verbose": False}
    found = {}
    for name, (file, shape, options) in cases.CASES.items():
        path = os.path.join(FOLDER, f"{file}.rec")
        batch = mxnet.io.ImageRecordIter(path_imgrec=path, data_shape=shape, **common, **options).next()
        found[name] = cases.compact(batch.data[0].asnumpy())
    np.savez_compressed(os.path.join(FOLDER, "images.npz"), **found)
    found = {}
    for name, options in cases.BOXES.items():
        path = os.path.join(FOLDER, "boxes.rec")
        batch = mxnet.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 12, 12), **common, **options).next()
        found[name] = cases.compact(batch.data[0].asnumpy())
        found[f"{name}, labels"] = batch.label[0].asnumpy()
    np.savez_compressed(os.path.join(FOLDER, "boxes.npz"), **found)


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    if sys.argv[1:] == ["values"]:
        record_values()
    else:
        sys.path.insert(0, os.path.dirname(HERE))
        write_records()
