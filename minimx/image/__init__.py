"""`mx.image` (and `mx.img`): images from files, what is done to them before a network sees them, and iterators that do all of it.

An image is an array of bytes `(height, width, 3)`, red first. `imread` and `imdecode` make one (reading.py; how, in codec.py). Functions
resize, cut and turn it (geometry.py, rotation.py); augmenters are objects that do the same with random numbers (augment.py, color.py; the
usual ones together in usual.py); ImageIter makes batches (iterator.py, listing.py). `mx.image.det` is about images whose labels are
boxes. Files of records are made by `python -m minimx im2rec`.

Everything here computes at once, in the calling thread. Decoding needs Pillow: `pip install 'minimx[image]'`.
"""

from . import detection, image
from .detection import *
from .detection import __all__ as _of_detection
from .image import *
from .image import __all__ as _of_images

det = detection  # MXNet's short name for it

__all__ = ["det", "detection", "image"]
__all__ += _of_images
__all__ += _of_detection
