"""Results: numbers, tables, plots and self-contained HTML pages.

report        ``Report``: the numbers of one model; prints, saves and plots itself
readings      decisions at 0.5 and at calibrated thresholds, measured and named
page          ``write_report``: the page of a run
sections      its sections that show results
comparison    ``comparison_page``: several runs on one page
compared      ``Comparison``: several models on the same labels, with paired intervals
data_page     the page of a data set's statistics
audit_page    the page of an audit
data_text     the same statistics as text for the console
templates/    the pages
html          render templates, and the pieces that templates are given
stored        the numbers of a run, from what its folder stores
markdown      names as text in Markdown
card          the model card (README.md of a model folder)
terms         the paper's abbreviations in words
style         one look for all plots, light and dark
plots         average precision, precision-recall curves, co-occurrence, counts
curves        training curves from log.csv
rungs         the ladder of a fitted run
reliability   the reliability plot of a calibration
samples       sample predictions on test images
overlay       heat maps over an image
"""

from sarb.report.compared import Comparison
from sarb.report.comparison import comparison_page
from sarb.report.page import write_report
from sarb.report.report import Report

__all__ = ["Comparison", "Report", "comparison_page", "write_report"]
