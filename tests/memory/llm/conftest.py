import pytest
from django.utils import translation


@pytest.fixture(autouse=True)
def _failures_are_told_in_english():
    with translation.override("en"):
        yield
