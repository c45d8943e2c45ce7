import os

# Vectors here are short: OpenBLAS's threads would wait for each other longer than they work, a busy
# machine several times as long. It reads this when numpy is imported first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from config.celery import app as celery_app

__all__ = ["celery_app"]
