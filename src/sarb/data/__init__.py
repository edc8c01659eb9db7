"""From files on disk to :class:`Data`: all reading of images and labels happens here.

loading       ``load``: choose the reader for a source, convert its options
detect        find the reader for a path
dataset       ``Dataset`` (labels and image paths) and ``Data`` (train, test, valid)
assemble      the last step of every reader: duplicate images, image folders, splits
splits        the splits a source has itself, or all its images
images        find image files; decoding and transforms in one import
decoding      any image as upright RGB (Pillow and NumPy only)
transforms    crop, resize, normalise; random crops and flips for training
strong        the strong view of an image, for methods with two views
words         word vectors for category names
readers/      one file per format
parse/        CSV, JSON and XML with line numbers; cells to label codes
check/        find problems in a source; statistics
writers/      write labels to files
demo/         the built-in data set of drawn images
"""

from sarb.data.dataset import Data, Dataset
from sarb.data.loading import DATASETS, load, reader_name

__all__ = ["DATASETS", "Data", "Dataset", "load", "reader_name"]
