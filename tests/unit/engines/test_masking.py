"""What of a configuration may be printed."""

from __future__ import annotations

import pytest

from atoll.engines.userconfig.masking import masked_lines, without_secrets


@pytest.mark.parametrize(
    "line",
    [
        "http-server.https.keystore.key=hunter2",
        'gcs.json-key={"private": "hunter2"}',
        "exchange.azure.connection-string=AccountName=x;AccountKey=hunter2;",
        "fs.azure.account.key.mine.dfs.core.windows.net=hunter2",
        "-Dldap.pwd=hunter2",
        "-Dpassword=hunter2",
        "ldap.bind-password : hunter2",
        "spark.ssl.keyPassword hunter2",
        "spark.es.net.http.auth.pass hunter2",
        "spark.ssl.keyStore.pwd\thunter2",
        "spark.redis.auth hunter2",
        "http-server.https.keystore.key hunter2",
        "export AWS_SECRET_ACCESS_KEY=hunter2",
        '  "password": "hunter2",',
        "password: hunter2",
        "<password>hunter2</password>",
        "<name>fs.s3a.secret.key</name><value>hunter2</value>",
        '<property name="db.password" value="hunter2"/>',
        "primary_conninfo = 'host=x password=hunter2'",
        "create user x identified by 'hunter2'",
        "connection-url=jdbc:postgresql://me:hunter2@host/db",
        "connection-url=mongodb://me:p@hunter2@host/db",
        "wsrep_sst_auth = me:hunter2",
        'http-event-listener.connect-http-headers="Authorization: Basic hunter2"',
        "connection-url=jdbc:postgresql://me:p@hunter2@host/db",
        "keystore.password=<hunter2>",
        "ldap.pw=hunter2",
        "ldap.bind-password: <hunter2",
        "wsrep_sst_auth = backup:hunter2",
        "spark.hadoop.fs.azure.sas.box.account.blob.core.windows.net hunter2",
        "connect-http-headers=X-Cluster: a, Authorization: Basic hunter2",
        "curl -u me:hunter2 https://host/x",
        "curl --proxy-user 'me:p hunter2' https://host/x",
        "curl -sSu me:hunter2 https://host/x",
        "curl --user='some one:hunter2'",
        '["curl", "-u", "me:hunter2", "https://host"]',
        "connection-url=jdbc:oracle:thin:me/hunter2@//host:1521/db",
    ],
)
def test_what_looks_like_a_secret_is_not_told(line: str) -> None:
    told = without_secrets(line)
    assert "hunter2" not in told
    assert told.startswith(line[:5])


@pytest.mark.parametrize(
    "line",
    [
        "hive.s3.sse.kms-key-id=x",
        "key_buffer_size = 1",
        "a.path=/k",
        "http-server.authentication.type=PASSWORD",
        "<name>fs.s3a.endpoint</name><value>shown</value>",
        "spark.sql.hive.metastore.authorization.enabled true",
        "discovery.uri=http://127.0.0.1:8080",
        "spark.sasl.timeout=9",
        "spark.a.keyboard x",
        "# the key of it",
        "exec runuser -u trino -- bin/launcher run --verbose",
        "docker run --user 1000:1000 -p 8080:8080 trinodb/trino",
        "-url=jdbc:mysql://host/x",
        "--username=jdbc:x",
    ],
)
def test_what_is_none_is(line: str) -> None:
    assert without_secrets(line) == line


# Each with what comes after it and is no secret.
OVER_LINES = {
    "properties": "keystore.password=\\\n  hunter2\\\n  hunter2\nshown=1",
    "INI": 'password = "hunter2\nhunter2"\nshown = 1',
    "JSON": '{"password":\n  "hunter2",\n "shown": 1}',
    "JSON, a list": '{"tokens": ["hunter2",\n  "hunter2"],\n "shown": 1}',
    "JSON, within": '{"secret": {\n  "a": {"b": "hunter2"},\n  "c": "hunter2"\n },\n "shown": 1}',
    "XML": "<name>x.password</name>\n<value>hunter2\nhunter2</value>\n<shown/>",
    "XML, named": "<password>\n hunter2\n</password>\n<shown/>",
    "XML, begun": "<password>hunter2\nhunter2</password>\n<shown/>",
    "PEM": "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nshown",
}


@pytest.mark.parametrize("kind", OVER_LINES)
def test_a_secret_over_several_lines(kind: str) -> None:
    text = f"shown\n{OVER_LINES[kind]}\nit's shown"
    told = masked_lines(text, path="file")
    assert len(told) == len(text.splitlines())
    assert "hunter2" not in "\n".join(told)
    assert "\n".join(told).count("shown") == 3


@pytest.mark.parametrize("path", ["etc/password.db", "tls/server.pem", "coordinator/user"])
def test_some_files_are_all_secret(path: str) -> None:
    assert masked_lines("me:$2y$10$hunter2\nx", path=path) == ["***", "***"]


def test_a_long_key_is_read_in_time() -> None:
    # At once; by the square of its length it would be ten minutes.
    assert masked_lines(f"gcs.json-key={'a1B' * 10_000}", path="file") == ["gcs.json-key=***"]
    for line in (f"x={'a1B' * 10_000}", "jdbc:oracle:a:/" * 8000, "-u 1:2" * 8000):
        assert masked_lines(line, path="file")[0][:5] == line[:5]
