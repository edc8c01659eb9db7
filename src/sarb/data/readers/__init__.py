"""One reader per format; each has a function that returns :class:`sarb.data.Data`.

table                 wide tables: CSV, TSV, JSON lines, Parquet
table_header          columns of a wide table
file_column           which column holds the image names
json_lines            rows of a JSON lines file
parquet               rows of a Parquet file
list_table            tables with a list of labels per image
list_delimiter        what separates the labels in such a list
folder                Hugging Face ImageFolder: images with a metadata file
npy                   a NumPy array and a list of files
coco                  COCO
instances             a file in COCO format
lvis                  LVIS
voc                   Pascal VOC
visual_genome         Visual Genome: VG-200 built from objects
visual_genome_lists   Visual Genome: published lists
open_images           Open Images
open_images_layout    its files and folders
open_images_classes   its class descriptions
chexpert              CheXpert
nus_wide              NUS-WIDE
nus_wide_layout       its files and folders
nus_wide_column       one of its label files
label_studio          Label Studio exports
label_studio_tasks    tasks in an export
label_studio_names    names of images and controls in an export
label_studio_yes_no   exports with a yes/no question per category
cvat                  CVAT exports
image_files           where the image files are
"""
