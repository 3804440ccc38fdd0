"""Runs plans: chains, waves, frames, epochs; on whatever executes the tasks."""
