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
# What every experiment of SWEEP has otherwise than the document.
SWEEP_DIFFERENT: Final = (
    "Intervals are 7.5 long where the text says 75: the decimal comma is lost, with 75 there would be a thousand times "
    "its results. The clock is simulated. Sizes of elements and pages, the rate of a merge thread and the fan-ins are "
    "not in the document: they were chosen so that its four counts of page accesses come out."
)
DOCUMENTS: Final = (SWEEP, LIFE, QJOIN, PRIO, BEST)
