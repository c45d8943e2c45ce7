"""Several calls at the same moment, each in a thread with connections of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import connections


def at_once(calls):
    """Make the calls together and return what they return, in their order."""
    gate = threading.Barrier(len(calls))

    def run(call):
        gate.wait()
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
