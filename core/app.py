"""Puts the parts together from the settings; opens, serves, closes them in order.

The one place that knows every part. It must not know any platform.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from core.agent import Agent
from core.answering import Answering
from core.backlog import Backlog
from core.chat import Chat
from core.config import Settings
from core.ending import end
from core.errors import StoreError
from core.inbox import Inbox
from core.memory import Memory
from core.protocols import Adapter, Library, Model, Tool
from core.search import DocIndex
from core.store import Store
from core.tools.read_doc import make_read_doc
from core.tools.remember import make_remember
from core.tools.search_docs import make_search_docs
from core.worker import Worker

log = logging.getLogger(__name__)

TEND_EVERY_S, TEND_AGAIN_S = 86_400.0, 5.0


class App:
    """A running Footnote without adapters. Made by `open`; `close` it."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        library: DocIndex,
        model: Model,
        closing: AsyncExitStack,
    ) -> None:
        self.settings = settings
        self.store = store
        self.library = library
        self.model = model
        self._closing = closing
        self._served: list[Backlog] = []
        self._watching: asyncio.Task[None] | None = None
        self.memory = Memory(
            store, memory_ttl_days=settings.memory_ttl_days, run_ttl_days=settings.run_ttl_days
        )
        self.inbox = Inbox(
            store,
            lease_s=settings.lease_s,
            memory_ttl_days=settings.memory_ttl_days,
            history_ttl_days=settings.history_ttl_days,
            run_ttl_days=settings.run_ttl_days,
        )
        tools = make_tools(library, self.memory, settings.search_results)
        agent = Agent(model, tools, library)
        answering = Answering(self.inbox, agent, settings.limits, settings.history_tokens)
        self._worker = Worker(
            self.inbox,
            answering,
            concurrent_runs=settings.concurrent_runs,
            grace_s=settings.grace_s,
        )
        self.chat = Chat(store, self.inbox, self.memory, self._worker)

    @classmethod
    async def open(cls, settings: Settings, *, model: Model | None = None) -> "App":
        """Connects and opens the index, building it where it is new.

        `model` is used in place of the one that the settings name.

        Raises:
            ConfigError: Redis is not there, or a setting cannot work.
            SearchError: the documents cannot be read.
        """
        async with AsyncExitStack() as stack:
            used = model or make_model(settings, stack)
            secret = settings.redis_url
            store = await Store.open(
                secret.get_secret_value() if secret else None, settings.data_dir
            )
            stack.push_async_callback(store.close)
            library = DocIndex(
                settings.docs_path,
                settings.data_dir,
                base_url=settings.docs_base_url,
                include=settings.docs_include,
                by_words_only=not settings.search_by_meaning,
            )
            await library.open()
            stack.push_async_callback(library.close)
            return cls(settings, store, library, used, stack.pop_all())
        raise AssertionError("unreachable")

    async def serve(self, adapters: Sequence[Adapter], stop: asyncio.Event) -> None:
        """Answers the messages of the adapters' workspaces until `stop`, then drains.

        From the first call until `close` the documents are watched, so that answers are current.
        """
        if self._watching is None:
            self._watching = asyncio.create_task(self.library.watch())
            self._closing.push_async_callback(end, self._watching)
        self._served = [
            self.backlog(adapter.platform, workspace)
            for adapter in adapters
            for workspace in adapter.workspaces
        ]
        tending = asyncio.create_task(self._tend())
        try:
            await self._worker.serve(adapters, stop)
        finally:
            await end(tending)

    async def _tend(self) -> None:
        """Registers and repairs what is served, now and once a day: old dead letters go too."""
        while True:
            pause_s = TEND_EVERY_S
            try:
                for backlog in self._served:
                    await backlog.register()
                    await backlog.repair()
            except StoreError as err:
                log.warning("the inbox is not looked after, trying again: %s", err)
                pause_s = TEND_AGAIN_S
            await asyncio.sleep(pause_s)

    def backlog(self, platform: str, workspace: str) -> Backlog:
        """The operator's view of one workspace's inbox."""
        return Backlog(self.store, platform, workspace, run_ttl_days=self.settings.run_ttl_days)

    async def health(self) -> Mapping[str, Any]:
        """`redis`: whether it answers; what waits in the inbox of what is served, and for how long.

        `waiting` counts messages not done, `oldest_age_s` is of the oldest, `dead_letters` those
        given up.
        """
        if not await self.store.is_healthy():
            return {"redis": False}
        try:
            stats = [await backlog.stats() for backlog in self._served]
        except StoreError:
            return {"redis": False}
        return {
            "redis": True,
            "waiting": sum(item.depth for item in stats),
            "oldest_age_s": round(max((item.oldest_age_s for item in stats), default=0.0), 1),
            "dead_letters": sum(item.dead for item in stats),
        }

    async def close(self) -> None:
        """Lets go of the model, the index and Redis, in that order."""
        await self._closing.aclose()


def make_model(settings: Settings, stack: AsyncExitStack) -> Model:
    """The provider's model, or the offline one where no key is set or it is asked for."""
    if settings.is_offline:
        from core.offline import OfflineModel

        return OfflineModel()
    from core.model import AnthropicModel

    key = settings.anthropic_api_key
    model = AnthropicModel(
        api_key=key.get_secret_value() if key else "",
        base_url=settings.anthropic_base_url,
        model=settings.model,
        thinking=settings.thinking,
        has_citations=settings.citations,
    )
    stack.push_async_callback(model.close)
    # the SDK takes seconds to import: it does so while Redis and the index open
    preparing = asyncio.create_task(model.prepare())
    stack.push_async_callback(asyncio.wait, {preparing})
    return model


def make_tools(library: Library, memory: Memory, results: int) -> dict[str, Tool]:
    """The registry: a new tool is one file in core/tools and one entry here."""
    tools = [make_search_docs(library, results), make_read_doc(library), make_remember(memory)]
    return {tool.name: tool for tool in tools}
