"""Text, JSON and XML read safely, with line numbers; cells to label codes.

text          CSV and plain text
rows          rows of a table with a header
stream        large JSON, element by element
element       one element, its fields checked
xml           XML without entities or outside references
codes         cells as spelled to a matrix of codes
facts         "this image shows that" to a matrix of codes
unlisted      what a category means that is not listed
messages      phrases that messages share
"""
