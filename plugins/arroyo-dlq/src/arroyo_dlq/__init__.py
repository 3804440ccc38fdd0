"""Folders of dead letters: what is in them, and how their rows go through a fixed pipeline, once.

{url}/part-*.parquet                  letters, as `filesystem.sink` writes a side output `errors`
{url}/bad-*.jsonl                     lines that a `filesystem.source` could not read
{url}/_replays/{number}/claim.json    which letters a replay takes; no other replay takes them
{url}/_replays/{number}/rows/         their rows, as the replay reads them
{url}/_replays/{number}/state/        the replay's checkpoints
{url}/_replays/{number}/done.json     the replay came to its end
"""
