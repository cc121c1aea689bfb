"""TPMJ: an ordered join of n inputs whose state does not fit into memory (see `configuration`)."""

from streamjoin.operators.tpmj.configuration import Shares, Tpmj
from streamjoin.operators.tpmj.order import Between, LinkTest, ValueOrder, value_order
from streamjoin.operators.tpmj.running import RunningTpmj

__all__ = ["Between", "LinkTest", "RunningTpmj", "Shares", "Tpmj", "ValueOrder", "value_order"]
