"""The five documents that streamjoin comes from."""

from __future__ import annotations

from typing import Final

from benchmarks.reproduce.experiment import Document

SWEEP: Final = Document(
    "SWEEP",
    "Sortierbasierte Joins über Datenströmen",
    "Cammert, Heinz, Krämer, Seeger; Philipps-Universität Marburg",
)
LIFE: Final = Document(
    "LIFE",
    "Data Lifetime Management Method in Stream Data Processing",
    "Imaki, Nishizawa; Hitachi",
)
QJOIN: Final = Document(
    "QJOIN",
    "QJoin: 质量驱动的乱序数据流连接处理技术",
    "Wei, Li, Xu, Lü, Yang; Guangxi University, 2020",
)
PRIO: Final = Document(
    "PRIO",
    "Priorisierte Verarbeitung von Datenstromelementen",
    "Jacobi, Bolles, Grawunder, Nicklas, Appelrath; Universität Oldenburg",
)
BEST: Final = Document("BEST", "The Window Algorithm", "TU München, Lehrstuhl III: Datenbanksysteme, 2005")
DOCUMENTS: Final = (SWEEP, LIFE, QJOIN, PRIO, BEST)
