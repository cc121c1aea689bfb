"""PMJ, the progressive merge join of finite inputs (see `configuration`)."""

from streamjoin.operators.pmj.budget import Budget
from streamjoin.operators.pmj.configuration import Pmj
from streamjoin.operators.pmj.running import RunningPmj

__all__ = ["Budget", "Pmj", "RunningPmj"]
