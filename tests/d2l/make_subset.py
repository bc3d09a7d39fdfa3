"""Makes minimx/d2l/data: the subset of Fashion-MNIST that comes with minimx.

    python tests/d2l/make_subset.py FOLDER

FOLDER holds the four files of the whole data set, such as Debian's package dataset-fashion-mnist puts into
/usr/share/datasets/fashion-mnist. The choice has no chance in it: of each class the first 600 training and the first 100 test
images, in the order of the whole set, which mixes the classes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from minimx.d2l import datasets


def first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """Positions of the first `count` examples of each class, in order."""
    return np.sort(np.concatenate([np.flatnonzero(labels == label)[:count] for label in range(len(datasets.LABELS))]))


def subset_of(whole: datasets.FashionMNIST) -> datasets.FashionMNIST:
    """The subset of the whole data set that comes with minimx."""
    train = first_of_each_class(whole.train_labels, 600)
    test = first_of_each_class(whole.test_labels, 100)
    return datasets.FashionMNIST(
        whole.train_images[train], whole.train_labels[train], whole.test_images[test], whole.test_labels[test]
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, array in zip(datasets.FILES, subset_of(datasets.load_fashion_mnist(sys.argv[1]))):
        datasets.write_idx(datasets.PACKAGE_FOLDER / name, array)
        print(f"{name}: {array.shape}, {Path(datasets.PACKAGE_FOLDER / name).stat().st_size} bytes")
