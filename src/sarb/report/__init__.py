"""What a run was worth: Report (numbers and tables), pictures, and one self-contained page."""

from sarb.report.comparison import comparison_page
from sarb.report.page import write_report
from sarb.report.report import Report

__all__ = ["Report", "comparison_page", "write_report"]
