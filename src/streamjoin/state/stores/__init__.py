"""Run stores: where runs lie that are not kept in memory. One interface (`store`), in memory and in files."""

from streamjoin.state.stores.files import FileStore
from streamjoin.state.stores.memory import MemoryStore
from streamjoin.state.stores.page_index import PAGE_ROWS, PageIndex
from streamjoin.state.stores.scratch import Scratch
from streamjoin.state.stores.store import RunStore, RunWriter, StoredRun

__all__ = ["PAGE_ROWS", "FileStore", "MemoryStore", "PageIndex", "RunStore", "RunWriter", "Scratch", "StoredRun"]
