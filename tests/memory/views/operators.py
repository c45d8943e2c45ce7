"""Operators for the tests of their pages."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from agents.models import Identity


def make_operator(name="opal", *user_ids, may_read=False):
    """An operator whom agents know by `user_ids`; with `may_read` one who may read contents."""
    account = get_user_model().objects.create_user(name, is_staff=True)
    for user_id in user_ids:
        Identity.objects.create(account=account, user_id=user_id)
    if may_read:
        account.user_permissions.add(Permission.objects.get(codename="view_content"))
    return account


def htmx(web, path, data=None, method="post"):
    """Ask as htmx does."""
    return getattr(web, method)(path, data or {}, headers={"HX-Request": "true"})
