"""The registry of tools: what the model can ask for, and how its arguments are checked.

A new tool is one file with a `make_…` function and one entry in the list that `core.app` builds.
It must not know the loop.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from core.errors import ToolError
from core.protocols import Tool, ToolContext, ToolResult

P = TypeVar("P", bound=BaseModel)

_UNSUPPORTED = ("title", "default", "minLength", "maxLength", "minimum", "maximum", "pattern")


def define_tool(
    name: str,
    description: str,
    parameters: type[P],
    run: Callable[[P, ToolContext], Awaitable[ToolResult]],
    *,
    changes_state: bool = False,
    shown: str | None = None,
) -> Tool:
    """A tool whose schema comes from `parameters` and whose arguments are checked against it.

    The tool's `run` raises ToolError with a text for the model when an argument is wrong.
    Source: strict tool schemas take no lengths, bounds or patterns and want every object closed.
    """

    async def checked(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        try:
            parsed = parameters.model_validate(dict(arguments))
        except ValidationError as err:
            problems = "; ".join(
                f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
                for problem in err.errors(include_url=False, include_input=False)
            )
            raise ToolError(f"The arguments of {name} are wrong: {problems}.") from None
        return await run(parsed, context)

    schema = _strict(parameters.model_json_schema())
    return Tool(name, description, schema, checked, changes_state, shown)


def tool_specs(tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The tools as the Messages API takes them, in a fixed order."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "input_schema": dict(tool.parameters),
            "strict": True,
        }
        for tool in tools.values()
    ]


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    properties = cast("dict[str, dict[str, Any]]", schema.get("properties", {}))
    return {
        "type": "object",
        "properties": {
            name: {key: value for key, value in prop.items() if key not in _UNSUPPORTED}
            for name, prop in properties.items()
        },
        "required": list(schema.get("required", [])),
        "additionalProperties": False,
    }
