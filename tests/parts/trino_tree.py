"""An `etc` tree as a platform engineer has it: TLS, passwords, groups, catalogs, flags in files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

USER, PASSWORD = "ann", "swordfish"
KEYSTORE_PASSWORD = "open sesame"

CONFIG = """\
# Of our cluster of ten machines.
coordinator=true
node-scheduler.include-coordinator=false
http-server.http.enabled=true
http-server.http.port=8080
http-server.https.enabled=true
http-server.https.port=8443
http-server.https.keystore.path=etc/keystore.p12
http-server.https.keystore.key=open sesame
http-server.authentication.type=PASSWORD
discovery.uri=https://coordinator.example.net:8443
internal-communication.shared-secret=${ENV:CLUSTER_SECRET}
internal-communication.https.required=true
query.max-memory=500GB
query.max-memory-per-node=100GB
query.max-run-time=1h
query-manager.required-workers=10
spill-enabled=true
spiller-spill-path=/mnt/ssd1/spill,/mnt/ssd2/spill
jmx.rmiregistry.port=9080
jmx.rmiserver.port=9081
"""
NODE = """\
node.environment=production
node.id=ffffffff-ffff-ffff-ffff-ffffffffffff
node.data-dir=/var/lib/trino
plugin.dir=/usr/lib/trino/plugin
catalog.config-dir={root}/catalogs
"""
JVM = """\
-server
# of each machine
-Xmx54G
-Xms54G
-XX:ParallelGCThreads=48
-Dours=a b
-XX:+UseG1GC
-XX:G1HeapRegionSize=4M
-XX:+ExitOnOutOfMemoryError
-XX:-OmitStackTraceInFastThrow
-Djdk.attach.allowAttachSelf=true
-Djava.security.properties=etc/java.security
-Dcom.sun.management.jmxremote.rmi.port=9081
"""
# Answers with a line at the port that its options begin with, as an exporter does.
AGENT = """\
import java.net.*;

public class Agent {
    public static void premain(String options) throws Exception {
        var server = new ServerSocket(Integer.parseInt(options.split(":")[0]));
        var thread = new Thread(() -> {
            while (true) {
                try (var client = server.accept()) {
                    client.getOutputStream().write("metrics\\n".getBytes());
                } catch (Exception lost) {
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
"""
AGENT_FLAG = "-javaagent:etc/agent.jar={}:metrics.yaml"
FILES = {
    "java.security": "networkaddress.cache.ttl=60\n",
    "log.properties": "=WARN\nBootstrap=WARN\n",
    "password-authenticator.properties": (
        "password-authenticator.name=file\nfile.password-file=etc/password.db\n"
    ),
    # What bcrypt makes of PASSWORD.
    "password.db": f"{USER}:$2y$10$abcdefghijklmnopqrstuuivHRne1b8fIlcxc8Qcz3debdq6Vefzy\n",
    "resource-groups.properties": (
        "resource-groups.configuration-manager=file\nresource-groups.config-file=etc/groups.json\n"
    ),
    "groups.json": json.dumps(
        {
            "rootGroups": [
                {"name": "ours", "softMemoryLimit": "80%", "hardConcurrencyLimit": 5}
                | {"maxQueued": 100}
            ],
            "selectors": [{"group": "ours"}],
        },
        indent=2,
    ),
    "catalogs/tpch.properties": "connector.name=tpch\ntpch.splits-per-node=2\n",
    "catalogs/lake.properties": (
        "connector.name=hive\n"
        "hive.metastore=file\n"
        "hive.metastore.catalog.dir=local:///metastore\n"
        "fs.native-local.enabled=true\n"
        "local.location=${ENV:LAKE}\n"
    ),
}


def _write_agent(jar: Path) -> None:
    """Nothing but the JDK is needed to compile it."""
    javac, packer = shutil.which("javac"), shutil.which("jar")
    if javac is None or packer is None:
        pytest.skip("javac and jar, which make the agent, are not installed")
    folder = jar.parent.parent / "agent"
    folder.mkdir()
    jar.parent.mkdir(exist_ok=True)
    (folder / "Agent.java").write_text(AGENT)
    (folder / "manifest").write_text("Premain-Class: Agent\n")
    subprocess.run([javac, "Agent.java"], check=True, capture_output=True, timeout=120, cwd=folder)
    subprocess.run(
        [packer, "cfm", str(jar), "manifest", "Agent.class"],
        check=True,
        capture_output=True,
        timeout=120,
        cwd=folder,
    )


def write_tree(root: Path) -> Path:
    """Its certificate, for 127.0.0.1. Nobody can write into the tree afterwards."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    _write_agent(root / "agent.jar")
    certificate, key = root.parent / "certificate.pem", root.parent / "key.pem"
    texts = {
        "config.properties": CONFIG,
        "node.properties": NODE.format(root=root),
        "jvm.config": f"{JVM}{AGENT_FLAG.format(9404)}\n",
        **FILES,
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for words in (
        [
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=ours"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        [
            *("pkcs12", "-export", "-inkey", str(key), "-in", str(certificate)),
            *("-passout", f"pass:{KEYSTORE_PASSWORD}", "-out", str(root / "keystore.p12")),
        ],
    ):
        subprocess.run([openssl, *words], check=True, capture_output=True, timeout=60)
    for path in (*root.rglob("*"), root):
        path.chmod(0o500 if path.is_dir() else 0o400)
    return certificate
