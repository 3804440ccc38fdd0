"""Plugins: the hook they implement, and how they are found."""

from arroyo_core.plugin.discovery import PluginReport, PluginSet, discover, installed_plugins
from arroyo_core.plugin.elsewhere import known_elsewhere
from arroyo_core.plugin.hookspec import hookimpl

__all__ = ["PluginReport", "PluginSet", "discover", "hookimpl", "installed_plugins", "known_elsewhere"]
