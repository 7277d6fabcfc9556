"""``dsched ui``: a web page about a running system."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dsched import log
from dsched.cli import console, options
from dsched.cli.commands import config
from dsched.clock import SystemClock
from dsched.errors import DschedError
from dsched.observe.address import LOOPBACK
from dsched.plugins import registry
from dsched.state import client

PORT = 8484
TOKEN, TOKEN_FILE = "DSCHED_UI_TOKEN", "DSCHED_UI_TOKEN_FILE"
NEEDS = frozenset({"starlette", "uvicorn", "jinja2", "anyio"})


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(epilog="Example: dsched ui --port 9000 --allow-write")(ui)


def ui(
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")
    ] = LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on, 0 for any that is free.")] = PORT,
    allow_write: Annotated[
        bool, typer.Option("--allow-write", help="Let visitors try pods now, pause and resume; else they only look.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            envvar=TOKEN_FILE,
            dir_okay=False,
            show_default=False,
            help=f"File with the token that visitors have to show; or {TOKEN} has it. Without either, one is made and "
            "printed where one is needed.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name under which the page may be asked for, as behind a proxy.", show_default=False),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, show_default=False, help="Certificate (PEM), to serve over TLS."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, show_default=False, help="Its key (PEM).")
    ] = None,
    rehearsal: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Show, too, what another version would decide differently: what replay or simulate with "
            "--compare-version and -o json has written.",
        ),
    ] = None,
    config_file: options.SystemConfigFile = None,
    seed: Annotated[int, typer.Option("--seed", help="The leader's, of the choice among equally good nodes.")] = 0,
    redis_url: options.RedisUrl = None,
    data_dir: options.DataDir = None,
    name: options.Name = None,
) -> None:
    r"""Serve a web page about a running system: queues, nodes, why a pod waits, and where a manifest would go.

    It only looks, unless --allow-write is given, and serves only this machine, unless --host names another address.
    Needs the extra: pip install 'dsched\[ui]'.
    """
    try:
        from dsched.ui import access
        from dsched.ui.app import Settings, listen, make, make_server, serve
        from dsched.ui.system import System
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in NEEDS:
            raise
        raise DschedError(f"the web page needs {library}; install it with: pip install 'dsched[ui]'") from error
    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("--tls-cert and --tls-key go together")
    hosts = access.Hosts.of(host, _names(allow_host or ()))
    log.configure("WARNING" if not allow_write else "INFO")
    plugins = registry.load()
    given = config.named(config_file)
    store = options.open_store(redis_url, data_dir, name)
    token, made = _token(token_file, needed=not access.loopback(host))
    with listen(host, port) as listening:
        bound = int(listening.getsockname()[1])
        settings = Settings(
            hosts=hosts,
            token=token,
            writes=allow_write,
            secure=tls_cert is not None,
            cookie=f"dsched-ui-{bound}",
            rehearsal=rehearsal,
        )
        system = System(
            store,
            client.shown(store.url),
            given,
            plugins,
            lambda configured: options.cluster_of(store, configured),
            SystemClock(),
            seed,
        )
        if given is not None:
            system.configuration()  # what is wrong with the file is said now
        app, live = make(system, settings)
        server = make_server(app, live, tls_cert, tls_key)
        shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
        lines = [f"dsched ui: {'https' if tls_cert else 'http'}://{shown}:{bound}/"]
        if made:
            lines.append(f"token:     {token}")
        lines.append(f"changes:   {'allowed' if allow_write else 'not allowed; --allow-write allows them'}")
        lines.append("stop:      Ctrl-C")
        console.write("\n".join(lines))
        serve(server, listening)


def _names(given: Sequence[str]) -> list[str]:
    """The names that requests may have, without ports: whichever they come by is the proxy's to say.

    Raises:
        BadParameter: no browser asks for such a name.
    """
    from dsched.ui import access

    names = []
    for each in given:
        name = access.hostname(each)
        if name is None:
            raise typer.BadParameter(f"{each!r} is neither NAME nor NAME:PORT", param_hint="--allow-host")
        names.append(name)
    return names


def _token(path: Path | None, *, needed: bool) -> tuple[str, bool]:
    """The token, empty where none is needed and none was given; and whether it was made here.

    Raises:
        DschedError: the file cannot be read, or the token is too short.
    """
    from dsched.ui import access

    if path is not None and path.name:
        try:
            return access.checked_token(path.read_text(), str(path)), False
        except (OSError, UnicodeDecodeError) as error:
            raise DschedError(f"{path} cannot be read: {error}") from error
    if given := os.environ.get(TOKEN, ""):
        return access.checked_token(given, TOKEN), False
    return (access.new_token(), True) if needed else ("", False)
