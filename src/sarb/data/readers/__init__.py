"""One file per format; each has a function that returns :class:`sarb.data.Data`.

table                 wide tables: CSV, TSV, JSON lines, Parquet
parquet               the Parquet part of it
list_table            tables with a list of labels per image
folder                Hugging Face's ImageFolder: metadata beside the images
npy                   a matrix and a list of files
coco                  COCO
lvis                  LVIS
voc                   Pascal VOC
visual_genome         Visual Genome, VG-200 built from its objects
visual_genome_lists   Visual Genome, published lists
open_images           Open Images
chexpert              CheXpert
nus_wide              NUS-WIDE
label_studio          Label Studio exports
label_studio_names    image names in them
cvat                  CVAT exports
"""
