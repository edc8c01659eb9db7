"""Read text, JSON and XML safely, with line numbers, and turn cells into labels.

text          CSV and plain text
rows          rows of a table with a header
stream        large JSON files, element by element
element       one element of a JSON array, with checked fields
xml           XML without entities or external references
codes         cells to a label matrix
meanings      what the codes of a table can mean, as a message
text_columns  which columns hold text instead of codes
facts         "this image shows that category" to a label matrix
unlisted      what it means if a category is not listed
messages      phrases that error messages share
"""
