"""Addresses for operators about people, below /users/."""

from __future__ import annotations

from django.urls import path

from memory.views import account, erasing, people

urlpatterns = [
    path("", people.users, name="users"),
    path("new/", account.new, name="user-new"),
    path("read/", people.give_reason, name="read-reason"),
    path("read/<int:entry_id>/", people.read, name="read"),
    path("erase/", erasing.erase_unclaimed, name="user-id-erase"),
    path("erased/<int:job_id>/", erasing.erased, name="erased"),
    path("<int:account_id>/", account.page, name="user"),
    path("<int:account_id>/role/", account.role, name="user-role"),
    path("<int:account_id>/active/", account.active, name="user-active"),
    path("<int:account_id>/reading/", account.reading, name="user-reading"),
    path("<int:account_id>/password/", account.password, name="user-password"),
    path("<int:account_id>/factor/", account.factor, name="user-factor"),
    path("<int:account_id>/sessions/", account.sessions, name="user-sessions"),
    path("<int:account_id>/link/", account.link, name="user-link"),
    path("<int:account_id>/unlink/<int:identity_id>/", account.unlink, name="user-unlink"),
    path("<int:account_id>/erase/", erasing.erase_account, name="user-erase"),
]
