"""Write labels to files.

write           ``write`` and ``sarb data convert``: choose the format, protect existing files
arrangement     merge the splits into one table, with the options that divide it again
formats         one writer per format
rewrite         ``rewrite``: write new labels in the form of their source, to be read with the same options
rewrite_table   wide tables: CSV, JSON lines and Parquet; metadata of a folder
rewrite_list    lists of labels
rewrite_npy     arrays of codes
edits           what is new in the rows of a file
csv_edit        copy a CSV with some cells changed
typed_edit      the same for JSON lines and Parquet
image_names     names that lead to the same images from another folder
"""
