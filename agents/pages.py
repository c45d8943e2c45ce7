"""Addresses of the accounts, below /accounts/.

What allauth has for accounts without mail: no address is kept, so nothing is reset or
confirmed by one, and a forgotten password is set anew by an operator.
"""

from __future__ import annotations

from allauth.account import views
from django.urls import include, path

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", views.signup, name="account_signup"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("2fa/", include("allauth.mfa.urls")),
]
