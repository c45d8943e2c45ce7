"""The product as `./run` starts it, with the demo's people."""

import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

from tests.test_readme import ROOT, environment_of, product

_PASSWORD = "three small kumquats"
_ADD_ACCOUNT = """
from django.contrib.auth import get_user_model
account = get_user_model().objects.create_user("{name}", password="{password}")
Identity.objects.create(account=account, user_id="{name}")
"""


@contextmanager
def started(folder, **variables):
    """Run it on a folder; yield where it listens, its people's passwords, its environment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = environment_of(folder, PORT=port, **variables)
    with product(environment):
        logins = folder / "demo-logins.txt"
        text = logins.read_text() if logins.exists() else ""
        passwords = dict(re.findall(r"(\w+)\s+password (\S+)", text))
        url = f"http://127.0.0.1:{port}"
        yield SimpleNamespace(
            url=url,
            passwords=passwords,
            environment=environment,
            folder=folder,
            sessions={},
            keeps_sessions=True,
        )


def manage(site, *arguments):
    """Run a management command beside the product."""
    command = [sys.executable, "manage.py", *arguments]
    subprocess.run(command, cwd=ROOT, env=site.environment, check=True, stdout=subprocess.DEVNULL)


def add_account(site, name):
    """Add an account whom no agent knows yet."""
    manage(site, "shell", "-c", _ADD_ACCOUNT.format(name=name, password=_PASSWORD))
    site.passwords[name] = _PASSWORD
