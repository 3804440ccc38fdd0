"""Operators and functions that are installed, with their docs."""

from __future__ import annotations

import json

from nicegui import ui

from arroyo_console.pages.frame import Site, frame, heading, html, section
from arroyo_console.pages.words import Safe, empty, facts, joined, link, table, tag
from arroyo_console.values import Connector, Function, Plugin

#: What is installed does not change while a server runs.
_FRESH_S = 300.0


async def installed_page(site: Site) -> None:
    live, console = site.live, site.console
    connectors = await live.get(console.connectors, fresh_s=_FRESH_S)
    functions = await live.get(console.functions, fresh_s=_FRESH_S)
    plugins = await live.get(console.plugins, fresh_s=_FRESH_S)
    with frame("Operators", here="/installed"):
        heading("Operators and functions")
        with ui.element("search").classes("bar").props('aria-label="operators"'):
            ui.input("Search", on_change=lambda event: look_for(event.value or "")).props(
                "outlined dense debounce=200 clearable"
            ).classes("fill")
        with section("Operators"):
            operators = html(_connectors(connectors))
        with section("Functions", note="For expressions and SQL."):
            found = html(_functions(functions))
        with section("Plugins", note="Distributions that bring them."):
            html(_plugins(plugins))

        def look_for(text: str) -> None:
            word = text.casefold()
            operators.set_content(
                _connectors(tuple(each for each in connectors if word in f"{each.name} {each.summary}".casefold()))
            )
            found.set_content(
                _functions(tuple(each for each in functions if word in f"{each.name} {each.text}".casefold()))
            )


async def connector_page(site: Site, name: str) -> None:
    connector = await site.live.get(site.console.connector, name, fresh_s=_FRESH_S)
    with frame(connector.name):
        html(tag("p", link("/installed", "Operators and functions")))
        heading(connector.name)
        html(joined([tag("p", connector.summary), tag("p", connector.text, style="white-space: pre-line")]))
        with section("What it is"):
            html(facts([("kind", connector.kind), ("from", f"{connector.distribution} {connector.version}")]))
        with section("Settings"):
            html(_settings(connector))
        if connector.example:
            with section("Example"):
                html(tag("pre", connector.example, tabindex="0", role="group", aria_label="example"))
        if connector.schema:
            with section("JSON Schema"):
                written = tag(
                    "pre", json.dumps(connector.schema, indent=2), tabindex="0", role="group", aria_label="schema"
                )
                html(tag("details", tag("summary", "Show the schema of its settings"), written))


def _connectors(connectors: tuple[Connector, ...]) -> Safe:
    if not connectors:
        return empty("No operator has that in its name or its summary.", "Search for another word.")
    lines = [
        [link(f"/installed/{each.name}", each.name), each.kind, each.summary, f"{each.distribution} {each.version}"]
        for each in connectors
    ]
    return table("operators", ("operator", "kind", "what it does", "from"), lines)


def _functions(functions: tuple[Function, ...]) -> Safe:
    if not functions:
        return empty(
            "No such function is installed.", "`arroyo udf` packs functions of your own; docs/udfs.md says how."
        )
    lines = [
        [tag("code", each.signature or each.name), each.text, f"{each.distribution} {each.version}"]
        for each in functions
    ]
    return table("functions", ("function", "what it does", "from"), lines)


def _plugins(plugins: tuple[Plugin, ...]) -> Safe:
    lines = [
        [
            each.name,
            f"{each.distribution} {each.version}",
            tag("span", each.error or "loaded", class_="problem" if each.error else None),
        ]
        for each in plugins
    ]
    return table("plugins", ("plugin", "distribution", "is"), lines)


def _settings(connector: Connector) -> Safe:
    if not connector.settings:
        return tag("p", "It has no settings.", class_="muted")
    lines = [
        [tag("code", each.name), each.type, "yes" if each.is_required else "", each.default, each.text]
        for each in connector.settings
    ]
    return table("settings", ("setting", "type", "required", "default", "what it means"), lines)
