"""Losses: functions of predictions or representations and targets, each a scalar."""

from sarb.losses.contrastive import contrastive
from sarb.losses.partial_bce import partial_bce

__all__ = ["contrastive", "partial_bce"]
