"""From files on disk to :class:`Data`: every source of images and labels is read here.

loading       ``load``: which reader for which source, options from text
detect        which reader a path needs
dataset       ``Dataset`` (labels, and where the images are) and ``Data`` (train, test, valid)
assemble      the end of every reader: repeated images, image folders, splits
images        find image files; decoding and transforms in one import
decoding      any image as upright RGB (Pillow and NumPy only)
transforms    crop, resize, normalise; random crops and flips for training
words         word vectors of category names
readers/      one file per format
parse/        CSV, JSON and XML with line numbers; cells to label codes
check/        what is wrong with a source, and statistics of it
writers/      labels back to files
demo/         the drawn data set
"""

from sarb.data.dataset import Data, Dataset
from sarb.data.loading import DATASETS, load, reader_name

__all__ = ["DATASETS", "Data", "Dataset", "load", "reader_name"]
