"""Agents: models of the proxy with a prompt, documents and ways of searching of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from parquetry.errors import SettingsError
from parquetry.serving.access.principals import Principal
from parquetry.serving.service.request_filters import RequestFilters, filters_of
from parquetry.settings.chat import AgentSettings
from parquetry.settings.sections import Settings
from parquetry.storage.search.attribute_conditions import AttributeGroup
from parquetry.storage.search.filters import Filters

_SINGLE = ("filename", "media_type", "user_id", "origin")
"""conditions with one value"""


@dataclass(frozen=True, slots=True)
class ChatAgent:
    """An agent of the settings."""

    settings: AgentSettings
    filters: Filters
    """conditions on documents that every request keeps"""

    @property
    def name(self) -> str:
        return self.settings.name

    def namespaces(self, principal: Principal) -> tuple[str, ...]:
        """Return the agent's namespaces that a principal sees; empty if the request names its namespace."""
        return tuple(name for name in self.settings.namespaces if principal.sees(name))

    def exists_for(self, principal: Principal) -> bool:
        """Return True unless none of the agent's namespaces exists for a principal."""
        return not self.settings.namespaces or bool(self.namespaces(principal))


class Agents:
    """The agents of the settings, in their order.

    Args:
        settings: settings of the service.

    Raises:
        SettingsError: the filters of an agent are not valid.
    """

    def __init__(self, settings: Settings) -> None:
        self._agents = {each.name: ChatAgent(each, _filters(each)) for each in settings.agent}

    def visible(self, principal: Principal) -> list[ChatAgent]:
        """Return the agents that exist for a principal."""
        return [each for each in self._agents.values() if each.exists_for(principal)]

    def find(self, name: Any, principal: Principal) -> ChatAgent | None:
        """Return the agent of a name; None if there is none, or not for the principal."""
        found = self._agents.get(name) if isinstance(name, str) else None
        return found if found is not None and found.exists_for(principal) else None


def _filters(agent: AgentSettings) -> Filters:
    try:
        return filters_of(RequestFilters.model_validate(agent.filters))
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise SettingsError(
            f"filters of the agent {agent.name!r}: {place}: {error.errors()[0]['msg']}; they are those of a request"
        ) from None


def both(one: Filters, other: Filters) -> Filters:
    """Return the conditions of both filters.

    Raises:
        SettingsError: both have a condition that can have one value only.
    """
    values = {name: getattr(one, name) or getattr(other, name) for name in _SINGLE}
    for name, value in values.items():
        if getattr(other, name) not in (None, value):
            shown = "source" if name == "origin" else name
            raise SettingsError(f"the agent's filters have {shown} already; leave it out of rag_filters")
    attributes = tuple(each.attributes for each in (one, other) if each.attributes is not None)
    return replace(
        one,
        **values,
        tags=(*one.tags, *other.tags),
        metadata=(*one.metadata, *other.metadata),
        comparisons=(*one.comparisons, *other.comparisons),
        attributes=AttributeGroup("and", attributes) if attributes else None,
        since=max(filter(None, (one.since, other.since)), default=None),
        until=min(filter(None, (one.until, other.until)), default=None),
    )
