"""A real Kubernetes API server for tests: etcd and kube-apiserver on free ports of 127.0.0.1.

There is no controller manager and no kubelet: ReplicaSets make no pods, claims are not bound to volumes, a pod that has
a node is gone only when it is deleted without grace, a namespace has no default service account and stays in
Terminating when it is deleted.

``python -m tests.e2e.apiserver --dir FOLDER`` runs one by hand until it is interrupted.
"""

import argparse
import base64
import http.client
import json
import signal
import ssl
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.e2e import programs
from tests.e2e.certificates import Authority
from tests.redis_server import free_port

START_DEADLINE_S = 180.0
POLL_S = 0.1
ADMISSION_OFF = "PodGroupProtection,ServiceAccount,StorageObjectInUseProtection,TaintNodesByCondition"
"""Admission plugins that count on a controller to prepare or undo what they ask for."""
Json = dict[str, Any]

EVERYTHING: list[Json] = [{"level": "None", "users": ["system:apiserver"]}, {"level": "Metadata"}]
"""Audit rules: who asked for what and how it was answered, a line a request."""


class ApiServer:
    """One control plane; its API server can be killed and started again on the same port and data.

    Args:
        audited: rules of the audit policy.
        readable: objects are kept as JSON in etcd; else as API servers do unless told otherwise.
        emulated: the minor version that it behaves as, such as ``1.34``; empty for its own.
        gates: feature gates that are not to be as by default, as ``A=true,B=false``.
        served: versions of its API that it does not serve by default, as ``GROUP/VERSION=true``.

    Attributes:
        url: of the API server.
        etcd_url: of its etcd, where nothing is compacted: all history of the objects is there.
        kubeconfig: path of a file for an administrator, with a client certificate.
        audit_log: path of the file with a JSON line a request.
    """

    def __init__(
        self,
        folder: Path,
        audited: list[Json] = EVERYTHING,
        *,
        readable: bool = True,
        emulated: str = "",
        gates: str = "",
        served: str = "",
    ) -> None:
        self.folder = folder.resolve()
        self._emulated = emulated
        self._gates = gates
        self._served = served
        self._audited = audited
        self._readable = readable
        self.programs = programs.folder()
        self.authority = Authority(self.folder / "certificates")
        self._server = self.authority.server()
        self._accounts_key = self.authority.key("service-accounts")
        self._admin = self.authority.client("test-admin", "system:masters")
        self._port, self._etcd_port, self._peer_port = free_port(), free_port(), free_port()
        self.url = f"https://127.0.0.1:{self._port}"
        self.etcd_url = f"http://127.0.0.1:{self._etcd_port}"
        self.audit_log = self.folder / "audit.log"
        self.kubeconfig = self.write_kubeconfig("admin", client=self._admin)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start both and wait until they are ready."""
        self._start("etcd", self._etcd_command())
        self._wait("etcd", lambda: self._answers(f"{self.etcd_url}/health"))
        self.start_server()

    def start_server(self) -> None:
        """Start the API server alone and wait until it is ready."""
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": self._audited,
        }
        (self.folder / "audit-policy.json").write_text(json.dumps(policy))
        self._start("kube-apiserver", self._server_command())
        self._wait("kube-apiserver", lambda: self._answers(f"{self.url}/readyz"))

    def kill_server(self) -> None:
        """kill -9 the API server; etcd goes on."""
        self._kill("kube-apiserver")

    def stop(self) -> None:
        """End both; nothing of them is needed any more."""
        for name in list(self._processes)[::-1]:
            self._kill(name)

    def kubectl(self, *words: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """What kubectl prints.

        Raises:
            AssertionError: it failed.
        """
        done = subprocess.run(
            [str(self.programs / "kubectl"), "--kubeconfig", str(kubeconfig or self.kubeconfig), *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def write_kubeconfig(self, name: str, *, client: tuple[Path, Path] | None = None, token: str = "") -> Path:
        """A kubeconfig that holds all it needs, for a client with a certificate and key, or a bearer token."""
        user = (
            {"client-certificate-data": _encoded(client[0]), "client-key-data": _encoded(client[1])}
            if client
            else {"token": token}
        )
        cluster = {"server": self.url, "certificate-authority-data": _encoded(self.authority.certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name}}],
            "current-context": name,
        }
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path

    def logs(self) -> str:
        """The ends of both logs, for messages."""
        paths = [self.folder / f"{name}.log" for name in ("etcd", "kube-apiserver")]
        return "\n".join(f"== {path}\n{path.read_text(errors='replace')[-3000:]}" for path in paths if path.exists())

    def _etcd_command(self) -> list[str]:
        peer = f"http://127.0.0.1:{self._peer_port}"
        return [
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ]

    def _server_command(self) -> list[str]:
        certificate, key = self._server
        return [
            "kube-apiserver",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--etcd-servers={self.etcd_url}",
            "--etcd-compaction-interval=0",
            *(["--storage-media-type=application/json"] if self._readable else []),
            *([f"--emulated-version={self._emulated}"] if self._emulated else []),
            *([f"--feature-gates={self._gates}"] if self._gates else []),
            *([f"--runtime-config={self._served}"] if self._served else []),
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.certificate}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._accounts_key}",
            f"--service-account-signing-key-file={self._accounts_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--allow-privileged",
            f"--disable-admission-plugins={ADMISSION_OFF}",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-maxsize=1000",
        ]

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(self.programs / command[0]), *command[1:]],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _wait(self, name: str, ready: Any) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while not ready():
            if self._processes[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start\n{self.logs()}")
            time.sleep(POLL_S)

    def _answers(self, url: str) -> bool:
        context = None
        if url.startswith("https"):
            context = ssl.create_default_context(cafile=str(self.authority.certificate))
            context.load_cert_chain(*self._admin)
        try:
            with urllib.request.urlopen(url, context=context, timeout=10) as answer:
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):
            return False

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def main() -> None:
    """Run one until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.apiserver", description=main.__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="new folder for its data, logs and kubeconfig")
    server = ApiServer(parser.parse_args().dir)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server.start()
    print(server.kubeconfig, flush=True)
    ended.wait()
    server.stop()


if __name__ == "__main__":
    main()
