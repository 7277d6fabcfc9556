"""``dsched ui``: what it refuses before it serves anything."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dsched.cli.commands.ui import TOKEN, TOKEN_FILE
from dsched.cli.main import app
from dsched.errors import DschedError
from dsched.state.client import Store


def refused(store: Store, *words: str, **variables: str) -> Result:
    """Run the command, which has to end by itself."""
    done = CliRunner().invoke(app, ["ui", "--redis-url", store.url, "--name", store.name, *words], env=variables)
    assert done.exit_code != 0
    return done


@pytest.mark.parametrize("how", ["option", "file", "environment"])
def test_a_token_that_is_too_short(store: Store, tmp_path: Path, how: str) -> None:
    path = tmp_path / "token"
    path.write_text("secretive\n")
    if how == "option":
        done = refused(store, "--token-file", str(path))
    else:
        done = refused(store, **({TOKEN_FILE: str(path)} if how == "file" else {TOKEN: "secretive"}))
    assert "9 characters, fewer than 16" in str(done.exception)
    assert "secretive" not in str(done.exception) + done.output


def test_a_token_file_that_is_not_there(store: Store, tmp_path: Path) -> None:
    assert "cannot be read" in str(refused(store, "--token-file", str(tmp_path / "none")).exception)


def test_a_certificate_without_its_key(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "cert.pem"
    path.write_text("")
    done = refused(store, "--tls-cert", str(path))
    assert done.exit_code == 2
    assert "go together" in done.output


def test_a_certificate_that_is_none(store: Store, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_text("no certificate\n")
    key.write_text("no key\n")
    done = refused(store, "--port", "0", "--tls-cert", str(certificate), "--tls-key", str(key))
    assert isinstance(done.exception, DschedError)
    assert f"the certificate in {certificate} and the key in {key} cannot be used" in str(done.exception)
    assert "https://" not in done.output


@pytest.mark.parametrize("name", ["https://proxy.example", "proxy.example/path", ""])
def test_a_name_that_no_browser_asks_for(store: Store, name: str) -> None:
    done = refused(store, "--allow-host", name)
    assert done.exit_code == 2
    assert "--allow-host" in done.output
    assert f"{name!r} is neither NAME nor NAME:PORT" in " ".join(done.output.replace("│", " ").split())


def test_an_address_that_this_machine_has_not(store: Store) -> None:
    done = refused(store, "--host", "192.0.2.1", "--port", "0", **{TOKEN: "a-token-that-is-long"})
    assert "cannot listen on 192.0.2.1" in str(done.exception)


def test_a_system_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSCHED_REDIS_URL", raising=False)
    done = CliRunner().invoke(app, ["ui", "--data-dir", str(tmp_path / "none")])
    assert "no dsched system runs with the data folder" in str(done.exception)
    done = CliRunner().invoke(app, ["ui", "--redis-url", "redis://127.0.0.1:1"])
    assert "does not answer" in str(done.exception)
