"""TLS goes by the host's name although what is connected to is an address that was checked."""

import ssl
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memory.llm import addresses, http
from memory.llm.failures import Failure, ModelFailed
from memory.llm.http import Endpoint
from tests.memory.model_server import ModelServer


def certificate(folder, name):
    """Write a certificate for `name` that signs itself, with its key; return the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / f"{name}.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize("certified", ["model.example", "other.example"])
def test_the_certificate_must_be_that_of_the_name(tmp_path, monkeypatch, certified):
    path = certificate(tmp_path, certified)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    client = httpx.Client(transport=http._GuardedTransport(allows_private=True))
    monkeypatch.setattr(http, "_client", lambda _: client)
    with ModelServer(tls=context) as server, client:
        port = int(server.url.rpartition(":")[2])
        rows = [(2, 1, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: rows)
        endpoint = Endpoint(f"https://model.example:{port}", "m", "k", True)

        def ask():
            body = {"model": "m", "input": ["Ming deploys"]}
            return http.post(endpoint, "embeddings", body, headers={}, seconds=5)

        if certified == "model.example":
            assert len(ask()["data"]) == 1
            return
        with pytest.raises(ModelFailed) as caught:
            ask()
        assert caught.value.kind == Failure.UNREACHABLE
        assert not server.asked
