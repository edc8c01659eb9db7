"""One file per format; each has a function that returns :class:`sarb.data.Data`.

table                 wide tables: CSV, TSV, JSON lines, Parquet
table_header          its columns
json_lines            its rows, from JSON lines
parquet               its rows, from Parquet
list_table            tables with a list of labels per image
list_delimiter        what separates the labels of such a list
folder                Hugging Face's ImageFolder: metadata beside the images
npy                   a matrix and a list of files
coco                  COCO
instances             an annotation file in COCO's format
lvis                  LVIS
voc                   Pascal VOC
visual_genome         Visual Genome, VG-200 built from its objects
visual_genome_lists   Visual Genome, published lists
open_images           Open Images
open_images_layout    its files and folders
open_images_classes   its class descriptions
chexpert              CheXpert
nus_wide              NUS-WIDE
nus_wide_layout       its files and folders
nus_wide_column       one of its label files
label_studio          Label Studio exports
label_studio_tasks    the tasks in them
label_studio_names    the image names in them
cvat                  CVAT exports
image_files           where image files are
"""
