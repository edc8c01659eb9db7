"""Format seconds, bytes and ratios for the tables; missing values are dashes."""

from __future__ import annotations


def format_seconds(value: float | None) -> str:
    """Return a text like ``2.50 s``, ``12.3 ms`` or ``4.56 µs``."""
    if value is None:
        return "–"
    if value >= 1:
        return f"{value:,.2f} s"
    return f"{1e3 * value:.3g} ms" if value >= 1e-3 else f"{1e6 * value:.3g} µs"


def format_bytes(value: int | None) -> str:
    """Return a text like ``1,234 MB``."""
    return "–" if value is None else f"{value / 1e6:,.0f} MB"


def format_ratio(value: float | None) -> str:
    """Return a text like ``1.23×`` or ``45×``."""
    if value is None:
        return "–"
    return f"{value:,.2f}×" if value < 10 else f"{value:,.0f}×"
