"""`arroyo serve`: the console, its API, and the supervision of jobs."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from arroyo_core.cli.arguments import port, restarts
from arroyo_core.cli.commands import CommandGroup, Commands
from arroyo_core.cli.exits import OK
from arroyo_core.errors import SetupError

if TYPE_CHECKING:
    from arroyo_console.safety.access import AccessRules

DEFAULT_PORT = 5115


def add_command(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        group=CommandGroup.JOBS,
        help="serve the web console and the HTTP API, and supervise jobs",
        description="Serve the web console and the HTTP API, and supervise the jobs that are started there. Jobs are "
        "processes of their own: they go on when the server ends, and the next one finds them.",
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default: %(default)s")
    parser.add_argument("--port", type=port, default=DEFAULT_PORT, metavar="N", help="default: %(default)s")
    parser.add_argument("--data", metavar="DIR", help="where logs, journals and the database go")
    parser.add_argument(
        "--database", metavar="URL", help="postgresql://... or sqlite:///PATH (default: a file in --data)"
    )
    parser.add_argument("--no-pages", action="store_true", help="the API only")
    _add_jobs(parser)
    _add_texts(parser)
    _add_access(parser)
    parser.set_defaults(command=serve)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("jobs", "How pipelines are run: each as an `arroyo run` of its own.")
    group.add_argument("--master", metavar="URL", help="the Spark master of all jobs (default: that of `arroyo run`)")
    group.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting")
    group.add_argument("--in-process", action="store_true", help="run jobs without Spark: for small data and tests")
    group.add_argument("--insecure-udfs", action="store_true", help="as for `arroyo run`")
    group.add_argument(
        "--max-restarts",
        type=restarts,
        default=10,
        metavar="N",
        help="how often in a row a job is started again that has died (default: %(default)s)",
    )


def _add_texts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "texts", "How pipelines are checked, drawn and previewed: in untrusted mode (docs/untrusted.md)."
    )
    group.add_argument(
        "--allow-code", action="store_true", help="trust them: run their functions, and ask their sources for columns"
    )
    group.add_argument(
        "--allow-env", action="append", default=[], dest="variables", metavar="NAME", help="a variable they may read"
    )
    group.add_argument(
        "--root", action="append", default=[], dest="roots", metavar="DIR", help="a folder whose files they may read"
    )


def _add_access(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "access",
        "On loopback you may do everything, and no other user of this machine but root may do anything, unless there "
        "is a token. At any other address a token is needed: that of ARROYO_CONSOLE_TOKEN, or of the file DATA/token, "
        "which is made if it is missing.",
    )
    group.add_argument("--token-file", metavar="FILE", help="with the token to write (default: DATA/token)")
    group.add_argument("--read-token-file", metavar="FILE", help="with a token that may only read")
    group.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a name that the server is reached under"
    )
    group.add_argument(
        "--trust-proxy-header", metavar="NAME", help="a reverse proxy says in this header who asks; others may read"
    )
    group.add_argument(
        "--proxy", action="append", default=[], metavar="ADDRESS", help="that of the proxy (default: this machine)"
    )
    group.add_argument(
        "--writer",
        action="append",
        default=[],
        metavar="USER",
        help="who may write, as the proxy says; * is all",
    )


def serve(args: argparse.Namespace) -> int:
    # Here: they take a second to import, which no other command should wait for.
    import uvicorn

    from arroyo_console.api.app import make_app
    from arroyo_console.building import ConsoleSettings, build_console
    from arroyo_console.folders import default_data_folder
    from arroyo_console.planning.texts import TextSettings
    from arroyo_console.supervision.launching import LaunchSettings

    data = Path(args.data).absolute() if args.data else default_data_folder()
    console = build_console(
        ConsoleSettings(
            data=data,
            database=args.database,
            launch=LaunchSettings(
                master=args.master,
                conf=tuple(args.conf),
                is_in_process=args.in_process,
                insecure_udfs=args.insecure_udfs,
            ),
            texts=TextSettings(allows_code=args.allow_code, variables=tuple(args.variables), roots=tuple(args.roots)),
            max_restarts=args.max_restarts,
        )
    )
    rules = access_rules(args, data)
    app = make_app(console, rules, has_pages=not args.no_pages)
    shown = f"[{args.host}]" if ":" in args.host else args.host
    print(f"arroyo: serving http://{shown}:{args.port}, data in {data}", file=sys.stderr, flush=True)
    # The proxy's headers about addresses are not believed: who may pass is decided by the real one.
    uvicorn.run(
        app,
        host=args.host,
        port=args.port,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        ws_max_size=2**20,
        # Streams of output have no end of their own.
        timeout_graceful_shutdown=5,
    )
    return OK


def access_rules(args: argparse.Namespace, data: Path) -> AccessRules:
    """Raises `SetupError` for an address that others reach, where nothing says who may."""
    from arroyo_console.safety import peers
    from arroyo_console.safety.access import AccessRules, is_loopback
    from arroyo_console.safety.tokens import make_token, read_tokens
    from arroyo_console.values import Role

    is_local = is_loopback(args.host)
    file = Path(args.token_file) if args.token_file else data / "token"
    if args.token_file and not file.exists():
        raise SetupError(f"--token-file {file} is not there: a line with at least 20 letters and digits, mode 600")
    if args.read_token_file and not Path(args.read_token_file).exists():
        raise SetupError(f"--read-token-file {args.read_token_file} is not there")
    if args.writer and not args.trust_proxy_header:
        raise SetupError("--writer goes with --trust-proxy-header: a token says by itself what it may")
    if not is_local and not args.trust_proxy_header and not os.environ.get("ARROYO_CONSOLE_TOKEN"):
        make_token(file)
    # Of a token that was made for another address, a server on loopback knows nothing, unless it is told to.
    chosen = file if args.token_file or not is_local else None
    tokens, used = read_tokens(
        os.environ, file=chosen, read_file=Path(args.read_token_file) if args.read_token_file else None
    )
    if Role.WRITE in used:
        print(f"arroyo: the token is in {used[Role.WRITE]}", file=sys.stderr)
    return AccessRules(
        host=args.host,
        tokens=tokens,
        names=frozenset(name.lower() for name in args.allow_host),
        proxy_header=args.trust_proxy_header,
        proxies=tuple(args.proxy) or AccessRules().proxies,
        may_enter=peers.may_enter if peers.is_known_here() else None,
        writers=frozenset(args.writer),
    )
