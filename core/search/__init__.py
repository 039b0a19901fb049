"""The team's documents, searchable: `DocIndex` is the whole of it for the other rooms.

It must not know the agent, the tools or any platform.
"""

from core.search.index import DocIndex
from core.search.report import IndexReport, Progress, Skipped

__all__ = ["DocIndex", "IndexReport", "Progress", "Skipped"]
