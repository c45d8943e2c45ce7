"""Addresses. Until the memory pages exist the web interface is the plain admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, re_path
from django.utils.translation import gettext_lazy as _
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from memory.api import errors, health

admin.site.site_header = admin.site.site_title = _("Hippo administration")

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("agents.urls")),
    path("api/v1/agents/<str:agent>/", include("memory.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api-docs"),
    re_path(r"^api/", errors.unknown_address),
    path("healthz", health.LiveView.as_view(), name="healthz"),
    path("readyz", health.ReadyView.as_view(), name="readyz"),
]

handler400 = errors.handle_400
handler403 = errors.handle_403
handler404 = errors.handle_404
handler500 = errors.handle_500
