"""`arroyo dlq`: dead letters in files; what there is, what a letter says, and replaying them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from arroyo_core.api.visible import visible
from arroyo_core.cli.arguments import count
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.cli.options import JSON, add_format, add_planning, add_spark, planning, spark_conf
from arroyo_core.cli.tables import plain_value, print_rows
from arroyo_core.pipeline import Plan, plan_pipeline
from arroyo_core.pipeline.views import labels
from arroyo_core.plugin import PluginSet, installed_plugins
from arroyo_core.runtime.job import Job
from arroyo_core.runtime.local import LocalExecutor
from arroyo_core.runtime.results import JobResult
from arroyo_core.runtime.start import StartOptions
from arroyo_core.state import StorageProvider, default_warm_cache, get_storage_provider
from arroyo_dlq.claims import Claim, Replays, read_replays
from arroyo_dlq.letters import LetterFile, find_letters, is_text_file, read_rows
from arroyo_dlq.replay import Replayer, Runner, Selection
from arroyo_dlq.rewriting import Route

SHOWN_LETTERS = 20
SHOWN_ERROR = 80
#: The columns of a letter in the order in which they are shown, without their prefix.
_FIELDS = (
    "pipeline",
    "node",
    "operator",
    "plugin",
    "incarnation",
    "epoch",
    "subtask",
    "time",
    "udf",
    "udf_source",
    "position",
)


def add_command(commands: Commands) -> None:
    """Add `dlq ls|show|replay`."""
    parser = commands.add_parser(
        "dlq", group=CommandGroup.STATE, runs_pipelines=False, help="list, show and replay dead letters"
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    ls = _add(actions, "ls", "list which nodes have dead letters, and how many are open", _ls)
    add_format(ls, formerly=["--output"])
    show = _add(actions, "show", "show dead letters: the error, where it happened, and the row", _show)
    add_format(show, formerly=["--output"])
    show.add_argument("--limit", type=count, metavar="N", default=SHOWN_LETTERS, help="default: %(default)s")
    _add_filters(show)
    show.add_argument("--all", action="store_true", help="also letters that a replay has")
    _add_replay(actions)


def _add(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    command: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("url", metavar="URL", help="the folder of the dead letters")
    parser.set_defaults(command=command)
    return parser


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", metavar="ID", help="only letters of this node")
    parser.add_argument("--error", metavar="TEXT", help="only letters whose error has this text in it")


def _add_replay(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _add(
        actions,
        "replay",
        "feed the rows of open dead letters through a fixed pipeline, from the node on in which they failed",
        _replay,
    )
    parser.add_argument("--pipeline", required=True, metavar="FILE", help="the fixed pipeline in YAML")
    _add_filters(parser)
    parser.add_argument("--limit", type=count, metavar="N", help="at most so many letters")
    parser.add_argument("--job", metavar="NAME", help="the name the pipeline had when the rows failed")
    parser.add_argument("--into", metavar="ID", help="give the rows to this node instead")
    parser.add_argument("--until", metavar="ID", help="the last node to run; its output goes to --sink")
    parser.add_argument("--sink", metavar="URL", help="write Parquet files there instead of to the pipeline's sinks")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be replayed")
    parser.add_argument("--in-process", action="store_true", help="without Spark, in one thread: for few letters")
    add_spark(parser)
    add_planning(parser)


@dataclass(slots=True)
class Summary:
    """The letters of one node."""

    pipeline: str
    node: str
    operator: str
    letters: int = 0
    #: No replay has them.
    open: int = 0
    replayed: int = 0
    first: str = ""
    last: str = ""
    #: That of the newest letter.
    error: str = ""


def _ls(args: argparse.Namespace) -> int:
    storage = get_storage_provider(args.url)
    found, replays = find_letters(storage), read_replays(storage)
    summaries = summarize(found.files, replays)
    if args.format == JSON:
        document = {
            "nodes": [asdict(summary) for summary in summaries],
            "broken_off_replays": [
                {"number": claim.number, "node": claim.node, "letters": claim.letters} for claim in replays.broken_off
            ],
            "other_files": list(found.others),
        }
        print(json.dumps(document, indent=2))
        return OK
    if not summaries:
        print(f"no dead letters below {storage.url}")
    else:
        columns = ["pipeline", "node", "operator", "letters", "open", "first", "last", "newest error"]
        print_rows(columns, [_ls_row(summary) for summary in summaries])
    for claim in replays.broken_off:
        print(f"\nreplay {claim.number} of {claim.node!r} ({claim.letters} letters) was interrupted: {_GO_ON}")
    if found.others:
        example = visible(found.others[0])
        print(f"\n{len(found.others)} files hold no dead letters, such as {example}; letters are Parquet files")
    return OK


_GO_ON = "`arroyo dlq replay` goes on with it"


def summarize(files: Iterable[LetterFile], replays: Replays) -> list[Summary]:
    """The letters of these files by pipeline and node."""
    summaries: dict[tuple[str, str], Summary] = {}
    for file in files:
        claimed, replayed = replays.claimed(file.path, file.letters), replays.replayed(file.path, file.letters)
        for place, letter in enumerate(file.provenance.to_pylist()):
            key = (letter["_error_pipeline"] or "?", letter["_error_node"] or "?")
            summary = summaries.setdefault(key, Summary(*key, operator=letter["_error_operator"] or "?"))
            summary.letters += 1
            summary.open += place not in claimed
            summary.replayed += place in replayed
            time = f"{letter['_error_time']:%Y-%m-%dT%H:%M:%SZ}" if letter["_error_time"] else ""
            summary.first = min(summary.first or time, time)
            if time >= summary.last:
                summary.last, summary.error = time, letter["_error"] or ""
    return [summary for _, summary in sorted(summaries.items())]


def _ls_row(summary: Summary) -> list[object]:
    row = [summary.pipeline, summary.node, summary.operator, summary.letters, summary.open]
    return [*row, summary.first or "-", summary.last or "-", _shortened(summary.error)]


def _show(args: argparse.Namespace) -> int:
    storage = get_storage_provider(args.url)
    found = letters_below(storage, node=args.node, error=args.error, is_all=args.all)
    letters = list(islice(found, args.limit))
    if args.format == JSON:
        print(json.dumps(letters, indent=2))
        return OK
    if not letters:
        print("no such dead letter is open" if not args.all else "no such dead letter")
        return OK
    columns = ["time", "node", "epoch", "state", "error", "row"]
    print_rows(columns, [_show_row(letter) for letter in letters])
    return OK


def letters_below(
    storage: StorageProvider, *, node: str | None = None, error: str | None = None, is_all: bool = False
) -> Iterator[dict[str, Any]]:
    """The open letters of a node, or of all, whose error has that text in it, as JSON has them; with `is_all` also
    those that a replay has.
    """
    replays = read_replays(storage)
    for file in find_letters(storage).files:
        claimed, replayed = replays.claimed(file.path, file.letters), replays.replayed(file.path, file.letters)
        places = [
            place
            for place, letter in enumerate(file.provenance.to_pylist())
            if _is_meant(letter, node, error) and (is_all or place not in claimed)
        ]
        if not places:
            continue
        provenance, rows = file.provenance.take(places).to_pylist(), _rows_of(storage, file, places)
        for place, letter, row in zip(places, provenance, rows, strict=True):
            state = "replayed" if place in replayed else "claimed" if place in claimed else "open"
            yield {
                "file": file.path,
                "place": place,
                "state": state,
                "error": letter["_error"],
                **{name: plain_value(letter[f"_error_{name}"]) for name in _FIELDS},
                "row": {name: plain_value(value) for name, value in row.items()},
            }


def _is_meant(letter: dict[str, Any], node: str | None, error: str | None) -> bool:
    return node in (None, letter["_error_node"]) and (error is None or error in (letter["_error"] or ""))


def _rows_of(storage: StorageProvider, file: LetterFile, places: list[int]) -> list[dict[str, object]]:
    rows = read_rows(storage, file).take(pa.array(places, pa.int64()))
    return rows.to_pylist()  # type: ignore[no-any-return]


def _show_row(letter: dict[str, Any]) -> list[object]:
    where = f" at {letter['position']}" if letter["position"] else ""
    row = json.dumps(letter["row"], default=str, ensure_ascii=False)
    time = (letter["time"] or "-")[:19]
    return [time, letter["node"], letter["epoch"], letter["state"], f"{letter['error']}{where}", row]


def _replay(args: argparse.Namespace) -> int:
    storage = get_storage_provider(args.url)
    plugins = installed_plugins()
    plan = plan_pipeline(args.pipeline, **planning(args))
    selection = Selection(pipeline=args.job or plan.job_id, node=args.node, error=args.error, limit=args.limit)
    with ExitStack() as resources:
        run = _in_process(plugins) if args.in_process else _on_spark(args, plan, plugins, resources)
        replayer = Replayer(storage=storage, plan=plan, plugins=plugins, run=run)
        if args.dry_run:
            return _say_what_would_be(replayer, selection, args)
        has_replayed = False
        for done in replayer.replay(selection, into=args.into, until=args.until, sink=args.sink):
            has_replayed = True
            begun = "went on with" if done.is_resumed else "replayed"
            print(f"replay {done.claim.number}: {begun} {_letters_of(done.claim)}{_where(done.claim)}")
            for warning in done.warnings:
                print(f"warning: {warning}", file=sys.stderr)
    if not has_replayed:
        _say_what_there_is(selection, storage)
    elif args.limit is None and replayer.open_letters(selection):
        print("some rows failed again, and are new dead letters: see `arroyo dlq show`")
    return OK


def _say_what_there_is(selection: Selection, storage: StorageProvider) -> None:
    print("no open dead letter is meant: nothing is replayed")
    files, replays = find_letters(storage).files, read_replays(storage)
    for lines in summarize([file for file in files if is_text_file(file.path)], replays):
        if lines.open and lines.pipeline == selection.pipeline:
            print(
                f"{labels.count(lines.open, 'line')} that {lines.node!r} could not read never became rows: "
                "fix the text, put it into a new file, and let the pipeline read that"
            )
    others = {s.pipeline for s in summarize(files, replays) if s.open}
    others.discard(selection.pipeline)
    if others:
        print(f"there are letters of other pipelines: {visible(', '.join(sorted(others)))}; --job NAME takes them")


def _say_what_would_be(replayer: Replayer, selection: Selection, args: argparse.Namespace) -> int:
    for claim in replayer.broken_off(selection):
        replayer.check_repeated(claim, into=args.into, until=args.until, sink=args.sink)
        print(f"would go on with replay {claim.number}: {_letters_of(claim)}")
    for node, files in replayer.open_letters(selection).items():
        route = Route(into=args.into or node, until=args.until, sink=args.sink)
        replay = replayer.check(route, files)
        letters = sum(file.letters for file in files)
        path = " -> ".join(found.id for found in replay.nodes)
        print(visible(f"would replay {letters} letters of {node!r} through {path}"))
        for warning in replay.warnings:
            print(visible(f"warning: {warning}"))
    return OK


def _in_process(plugins: PluginSet) -> Runner:
    def run(plan: Plan, start: StartOptions) -> JobResult:
        if plan.checkpoint.url is None:
            raise AssertionError("a replay has a place for its state")
        executor = LocalExecutor(plugins, cache=default_warm_cache())
        return Job(plan, executor, plugins=plugins, storage_url=plan.checkpoint.url, start=start).run()

    return run


def _on_spark(args: argparse.Namespace, plan: Plan, plugins: PluginSet, resources: ExitStack) -> Runner:
    """Starts Spark with the first replay, and no sooner."""
    started: list[Any] = []

    def run(replay: Plan, start: StartOptions) -> JobResult:
        from arroyo_core.spark.pipeline import Pipeline
        from arroyo_core.spark.session import leave_spark, start_spark
        from arroyo_core.spark.target import resolve_target

        if not started:
            conf = spark_conf(args)
            print(f"{plan.job_id}: starting Spark ({resolve_target(args.master, conf)})", file=sys.stderr, flush=True)
            spark = start_spark(plan.job_id, master=args.master, conf=conf, is_quiet=not args.debug, workers=plan.width)
            started.append(spark)
            resources.callback(leave_spark, spark)
        return Pipeline(replay, plugins).run(started[0], start=start)

    return run


def _letters_of(claim: Claim) -> str:
    return f"{claim.letters} letter{'s' if claim.letters > 1 else ''} of {claim.node!r}"


def _where(claim: Claim) -> str:
    into = f" into {claim.into!r}" if claim.into != claim.node else ""
    until = f" until {claim.until!r}" if claim.until else ""
    return f"{into}{until}" + (f", output in {claim.sink}" if claim.sink else "")


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_ERROR else f"{text[:SHOWN_ERROR]}..."
