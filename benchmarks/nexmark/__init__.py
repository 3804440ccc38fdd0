"""Nexmark beside other engines. An engine runs in an environment without our packages, so nothing is imported here."""
