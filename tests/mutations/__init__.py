"""Pipelines that are changed at random, and planned in untrusted mode: nothing but mistakes may come of it."""
