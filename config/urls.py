"""Addresses. Until the memory pages exist the web interface is the plain admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path
from django.utils.translation import gettext_lazy as _
from django.views.generic import RedirectView

admin.site.site_header = admin.site.site_title = _("Hippo administration")

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
]
