"""`Stream`: a pipeline that is written in Python, planned as the same file would be."""

from __future__ import annotations

import itertools
import keyword
from collections.abc import Mapping
from typing import Any

from arroyo_core.errors import PipelineError
from arroyo_core.pipeline.builder.declaration import NODE_KEYS, DeclaredJob, DeclaredNode
from arroyo_core.pipeline.builder.operators import Call, OperatorWords, find_words, operators_of, plugin_names, words_of
from arroyo_core.pipeline.builder.places import CallSite, call_site
from arroyo_core.pipeline.mistakes import nearest


class Stream:
    """The rows that a node gives. Immutable: every method declares another node, and gives its stream.

    Operators of installed plugins are methods, `stream.filter("price > 100")`, and `stream.std.filter(...)` where more
    than one plugin has that name. `apply` takes any operator by its name. Arguments are the fields of the operator's
    config, in its order or by name; a field that Python has a word for ends in `_` (`as_`). Nothing is checked before
    the pipeline is made of it (`Pipeline.build`), and then all of it.

    A node takes `id`, `was` and `parallelism` besides. State belongs to the id. Without one, a node is called after its
    operator: `filter`, the next one from the sources on `filter_2`. Give an `id` to what keeps state and may be moved.
    """

    __slots__ = ("_node", "_output")

    def __init__(self, node: DeclaredNode, output: str | None = None) -> None:
        """For the methods of this class; programs begin with `Stream.source`."""
        self._node = node
        self._output = output

    @classmethod
    def source(cls, operator: str, /, *arguments: object, **config: Any) -> Stream:
        """Rows of a source: `Stream.source("nexmark.source", events=1000, table="bid")`."""
        return _declare(operator, arguments, config, before=1)

    def apply(self, operator: str, /, *arguments: object, **config: Any) -> Stream:
        """Any operator by name: `bids.apply("std.filter", predicate="price > 100")`.

        Streams among the arguments come first, and are further inputs.
        """
        return _declare(operator, (self, *arguments), config)

    def sink(self, operator: str, /, *arguments: object, **config: Any) -> Stream:
        """An end of the pipeline: `hot.sink("filesystem.sink", path="./out", format="parquet")`."""
        return _declare(operator, (self, *arguments), config)

    def output(self, name: str, /) -> Stream:
        """A side output of this node: `windows.output("late")`."""
        if self._output is not None:
            raise PipelineError(
                f"{self!r} is a side output already: ask the node itself for {name!r}", at=call_site().at, value=name
            )
        return Stream(self._node, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        plugins = plugin_names()
        if name in plugins:
            return PluginOperators(self, name)
        known = operators_of()
        wanted = _without_mark(name)
        found = known.get(wanted, ())
        if len(found) == 1:
            return Method(self, words_of(found[0]))
        if found:
            forms = " or ".join(f"stream.{each}" for each in found)
            raise AttributeError(f"several plugins have an operator {name!r}: write {forms}", name=name, obj=self)
        choices = sorted({*known, *plugins, *_OWN})
        near = nearest(name, choices)
        hint = f"did you mean {near!r}?" if near else f"installed are {', '.join(choices)}"
        raise AttributeError(f"no installed plugin has an operator {name!r} that reads a stream: {hint}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *plugin_names(), *operators_of()})

    def __repr__(self) -> str:
        name = self._node.keys.get("id")
        output = f".{self._output}" if self._output else ""
        return f"<Stream {f'{name}: ' if name else ''}{self._node.operator}{output}, {self._node.site.at}>"

    def __iter__(self) -> Any:
        # Else Python would ask for `stream[0]`, and say something about subscripts.
        raise TypeError("a stream has no rows before its pipeline runs: give it a sink and start the pipeline")


_OWN = ("apply", "output", "sink", "source")


class PluginOperators:
    """The operators of one plugin, as methods of a stream: `stream.std`."""

    __slots__ = ("_prefix", "_stream")

    def __init__(self, stream: Stream, prefix: str) -> None:
        self._stream = stream
        self._prefix = prefix

    def __getattr__(self, name: str) -> Method:
        if name.startswith("__"):
            raise AttributeError(name)
        known = operators_of(self._prefix)
        found = known.get(_without_mark(name))
        if found:
            return Method(self._stream, words_of(found[0]))
        near = nearest(name, known)
        hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known)) or 'sources only'}"
        raise AttributeError(f"plugin {self._prefix!r} has no operator {name!r} that reads a stream: {hint}")

    def __dir__(self) -> list[str]:
        return sorted(operators_of(self._prefix))

    def __repr__(self) -> str:
        return f"<operators of {self._prefix}: {', '.join(sorted(operators_of(self._prefix)))}>"


class Method:
    """An operator as a method. It has the signature and the documentation of the operator, for editors."""

    def __init__(self, stream: Stream, words: OperatorWords) -> None:
        self._stream = stream
        self._words = words
        self.__name__ = words.name
        self.__qualname__ = f"Stream.{words.name}"
        self.__signature__ = words.signature

    def __call__(self, *arguments: object, **config: Any) -> Stream:
        return _declare(self._words.name, (self._stream, *arguments), config, before=-1)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self._words.name} is an operator: call it, stream.{self._words.name}(...)")

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return self._words.doc

    def __repr__(self) -> str:
        return f"<operator {self._words.name}{self._words.signature}>"


def declare_job(ends: tuple[object, ...], settings: Mapping[str, object]) -> DeclaredJob:
    """A pipeline that ends in these streams. Raises `PipelineError` for what is not a stream."""
    site = call_site()
    if not ends:
        raise PipelineError("a pipeline needs at least one stream that ends in a sink", at=site.at)
    return DeclaredJob(ends=tuple(_main(end, site) for end in ends), settings=dict(settings), site=site)


def _main(end: object, site: CallSite) -> DeclaredNode:
    if not isinstance(end, Stream):
        raise PipelineError(
            f"a pipeline is made of streams, not of {type(end).__name__}", at=site.at, value=_short(end)
        )
    if end._output is not None:
        raise PipelineError(f"{end!r} is a side output without a sink", at=site.at)
    return end._node


def _declare(operator: str, arguments: tuple[object, ...], config: dict[str, Any], *, before: int = 0) -> Stream:
    """`before` is how many arguments the call has before the first of these; -1 where that is the stream itself."""
    site = call_site()
    if not isinstance(operator, str):
        raise PipelineError(f"an operator is named by text, not by {type(operator).__name__}", at=site.at)
    keys = {name: value for name in NODE_KEYS if (value := config.pop(name, None)) is not None}
    inputs = list(itertools.takewhile(lambda argument: isinstance(argument, Stream), arguments))
    rest = arguments[len(inputs) :]
    if any(isinstance(value, Stream) for value in (*rest, *config.values())):
        raise PipelineError(
            f"further inputs of {operator} stand before its other arguments, without a name", at=site.at
        )
    words = find_words(operator)
    if words is not None:
        call = words.call(rest, config, skipped=before + len(inputs), site=site)
    else:
        # Planning says what is wrong with the operator; which fields it has, nobody knows.
        fields = {_without_mark(name): name for name in config}
        call = Call({field: config[name] for field, name in fields.items()}, fields)
    node = DeclaredNode(
        operator=operator,
        inputs=tuple((each._node, each._output) for each in inputs if isinstance(each, Stream)),
        config=call.config,
        keys=keys,
        site=site,
        arguments=call.arguments,
    )
    return Stream(node)


def _without_mark(name: str) -> str:
    """A name that Python has a word for is written with `_` behind it."""
    plain = name.removesuffix("_")
    return plain if keyword.iskeyword(plain) else name


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
