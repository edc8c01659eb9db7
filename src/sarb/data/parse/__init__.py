"""Text, JSON and XML read safely, with line numbers; cells to label codes.

text          CSV and plain text
stream        large JSON, element by element
xml           XML without entities or outside references
codes         cells as spelled to a matrix of codes
facts         "this image shows that" to a matrix of codes
unlisted      what a category means that is not listed
"""
