"""From a folder of images to a file of records: `python -m minimx im2rec`, which does what MXNet's tools/im2rec.py does.

    python -m minimx im2rec --list --recursive --train-ratio 0.9 pets folder    writes pets_train.lst and pets_val.lst
    python -m minimx im2rec --resize 256 pets folder                            makes of each pets*.lst a .rec and an .idx

A list has a line for each image: its number, its label (the number of its folder, in order of names), its path below the root. Between
the two steps it can be edited: other labels, several of them (`--pack-label`), fewer images. Records are in the order of the list,
however many threads encode them.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from .. import codec, files, recordio
from ..base import MXNetError
from ..ops.resampling import LINEAR, resample
from .arrays import ImageError, Pixels
from .listing import Entry, read_list

AT_ONCE = 16  # images that a thread may be ahead of the file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options, under MXNet's names."""
    parser.add_argument("prefix", help="what the names of the lists and records begin with; may contain a folder")
    parser.add_argument("root", help="the folder with the images")
    lists = parser.add_argument_group("making lists")
    lists.add_argument("--list", action="store_true", help="write lists; without it, lists are read and records written")
    lists.add_argument(
        "--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], help="endings of images' names (default: %(default)s)"
    )
    lists.add_argument("--chunks", type=int, default=1, help="into how many lists to cut the images (default: 1)")
    lists.add_argument("--train-ratio", type=float, default=1.0, help="the part of the images for training (default: 1.0)")
    lists.add_argument(
        "--test-ratio", type=float, default=0.0, help="the part for testing; what is left is for validation (default: 0)"
    )
    lists.add_argument(
        "--recursive", action="store_true", help="look into folders below, each of which is a label; else all have label 0"
    )
    lists.add_argument("--no-shuffle", dest="shuffle", action="store_false", help="keep the images in order of names")
    records = parser.add_argument_group("making records")
    records.add_argument("--pass-through", action="store_true", help="take the files as they are, and change nothing")
    records.add_argument("--resize", type=int, default=0, help="make the shorter side so many pixels long (default: leave it)")
    records.add_argument("--center-crop", action="store_true", help="cut out the square in the middle")
    records.add_argument(
        "--quality", type=int, default=95, help="of JPEG, 1 to 100; of PNG, how hard to compress, 1 to 9 (default: 95)"
    )
    records.add_argument("--num-thread", type=int, default=1, help="how many threads read and encode (default: 1)")
    records.add_argument(
        "--color", type=int, default=1, choices=[-1, 0, 1], help="1 colours, 0 grey, -1 as the file has it (default: 1)"
    )
    records.add_argument("--encoding", default=".jpg", choices=[".jpg", ".png"], help="how to store images (default: .jpg)")
    records.add_argument("--pack-label", action="store_true", help="store all labels of a line; else only the first one")


def run(options: argparse.Namespace) -> int:
    """Do what the options say; the exit status, which is 1 if an image or everything was missed."""
    try:
        if options.list:
            make_lists(options)
            return 0
        lists = lists_of(options.prefix)
        return max([make_records(options, path) for path in lists])
    except (MXNetError, OSError) as error:
        print(f"im2rec: {error}", file=sys.stderr)
        return 1


# ---- lists


def find_images(root: str, recursive: bool, exts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The paths of the images below `root`, in order of names, with their labels: folders are numbered in the order they are met."""
    endings = {ending.lower() for ending in exts}
    labels: dict[str, int] = {}
    for folder, inner, names in os.walk(root, followlinks=True):
        inner.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.splitext(name)[1].lower() in endings and os.path.isfile(path):
                yield os.path.relpath(path, root), labels.setdefault(folder, len(labels)) if recursive else 0
        if not recursive:
            break
    for folder, label in labels.items():
        print(os.path.relpath(folder, root), label)


def make_lists(options: argparse.Namespace) -> None:
    """Write the lists of `--list`."""
    train, test = options.train_ratio, options.test_ratio
    if options.chunks < 1 or min(train, test) < 0 or train + test > 1:
        raise ImageError(
            f"--chunks {options.chunks} --train-ratio {train} --test-ratio {test}: at least one chunk is wanted, and ratios from 0 that "
            "make 1 at most"
        )
    if not os.path.isdir(options.root):
        raise ImageError(f"there is no folder {options.root}")
    images = list(enumerate(find_images(options.root, options.recursive, options.exts)))
    if not images:
        hint = "" if options.recursive else "; --recursive looks into the folders below it, too"
        raise ImageError(f"{options.root} has no image that ends in {', '.join(options.exts)}{hint}")
    if options.shuffle:
        random.Random(100).shuffle(images)  # the same order each time, and as MXNet has it
    size = -(-len(images) // options.chunks)
    for number in range(options.chunks):
        chunk = images[number * size : (number + 1) * size]
        name = options.prefix + (f"_{number}" if options.chunks > 1 else "")
        if train == 1:
            write_list(f"{name}.lst", chunk)
            continue
        tested, trained = int(size * test), int(size * train)
        if test:
            write_list(f"{name}_test.lst", chunk[:tested])
        if train + test < 1:
            write_list(f"{name}_val.lst", chunk[tested + trained :])
        write_list(f"{name}_train.lst", chunk[tested : tested + trained])


def write_list(path: str, images: Sequence[tuple[int, tuple[str, int]]]) -> None:
    for _, (name, _) in images:
        if any(mark in name for mark in "\t\r\n"):
            raise ImageError(f"{name!r} cannot be in a list, which has a line for each image and tabs in it; rename the file")
    lines = [f"{number}\t{label:f}\t".encode() + os.fsencode(name) + b"\n" for number, (name, label) in images]
    files.replace_file(path, lines)
    print(f"{path}: {len(lines)} images")


# ---- records


def lists_of(prefix: str) -> list[str]:
    """The lists whose names begin with `prefix`; of a folder, all in it. Raises ImageError if there is none."""
    prefix = os.path.abspath(prefix)
    folder = prefix if os.path.isdir(prefix) else os.path.dirname(prefix)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [os.path.join(folder, name) for name in names if name.endswith(".lst")]
    found = [path for path in found if path.startswith(prefix) and os.path.isfile(path)]
    if not found:
        raise ImageError(f"there is no list {prefix}*.lst; make one with --list")
    return found


def make_records(options: argparse.Namespace, path: str) -> int:
    """Write the records of the images in the list `path`; 1 if some were missed, else 0."""
    entries = read_list(path, np.dtype(np.float64))
    name = os.path.splitext(path)[0]
    missed = 0
    with recordio.MXIndexedRecordIO(f"{name}.idx", f"{name}.rec", "w") as record:
        for number, packed in encoded(options, entries):
            if isinstance(packed, bytes):
                record.write_idx(number, packed)
            else:
                missed += 1
                print(f"im2rec: {entries[number].path} is left out: {packed}", file=sys.stderr)
    print(f"{name}.rec: {len(entries) - missed} images" + (f", {missed} left out" if missed else ""))
    return int(missed > 0)


def encoded(options: argparse.Namespace, entries: dict[int, Entry]) -> Iterator[tuple[int, bytes | Exception]]:
    """The records in order, with their numbers; instead of one that could not be made, why."""
    threads = max(1, options.num_thread)
    waiting: deque[tuple[int, Future[bytes]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number, entry in entries.items():
                waiting.append((number, pool.submit(make_record, options, number, entry)))
                if len(waiting) > threads * AT_ONCE:
                    yield finished(*waiting.popleft())
            while waiting:
                yield finished(*waiting.popleft())
        finally:
            for _, future in waiting:  # of a run that was interrupted
                future.cancel()


def finished(number: int, future: Future[bytes]) -> tuple[int, bytes | Exception]:
    try:
        return number, future.result()
    except ImportError:
        raise
    except (MXNetError, OSError) as error:
        return number, error


def make_record(options: argparse.Namespace, number: int, entry: Entry) -> bytes:
    """The record of an image. Raises OSError, FileFormatError if it cannot be read."""
    label = entry.label if options.pack_label and entry.label.size > 1 else float(entry.label[0])
    header = recordio.IRHeader(0, label, number, 0)
    path = os.path.join(options.root, entry.path)
    with open(path, "rb") as file:
        data = file.read()
    if options.pass_through:
        return recordio.pack(header, data)
    pixels = codec.decode(data, options.color, upright=options.color != codec.AS_STORED, name=path)
    if options.center_crop:
        pixels = squared(pixels)
    if options.resize:
        pixels = shorter(pixels, options.resize)
    return recordio.pack(header, codec.encode(pixels, options.encoding, options.quality))


def squared(pixels: Pixels) -> Pixels:
    """The square in the middle."""
    height, width, _ = pixels.shape
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return pixels[top : top + side, left : left + side]


def shorter(pixels: Pixels, size: int) -> Pixels:
    """`pixels` with a shorter side of `size`, bilinearly."""
    height, width, _ = pixels.shape
    if height > width:
        return resample(pixels, height * size // width, size, LINEAR)
    return resample(pixels, size, width * size // height, LINEAR)
