"""Addresses: pages for people, the API for agents, the plain admin for superusers."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from csp.decorators import csp_update
from django.contrib import admin
from django.urls import include, path, re_path
from django.utils.translation import gettext_lazy as _
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from agents import views
from memory.api import errors, health
from memory.views import exports, overview, palette, system

admin.site.site_header = admin.site.site_title = _("Hippo administration")
# its own login would ask for no second factor and count no failures
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

# Swagger writes styles into what it draws
api_docs = csp_update({"style-src": ["'unsafe-inline'"]})(
    SpectacularSwaggerSplitView.as_view(url_name="schema")
)

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("setup/", include("memory.routes.setup")),
    path("memories/", include("memory.routes.memories")),
    path("search/", palette.palette, name="search"),
    path("me/", views.preferences, name="preferences"),
    path("me/memory/", include("memory.routes.mine")),
    path("agents/", include("memory.routes.agents")),
    path("keys/", include("memory.routes.keys")),
    path("users/", include("memory.routes.people")),
    path("", include("memory.routes.operating")),
    path("jobs/", include("memory.routes.jobs")),
    path("import/", include("memory.routes.imports")),
    path("export/", exports.export, name="export"),
    path("look/", views.look, name="look"),
    path("accounts/", include("agents.pages")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("agents.urls")),
    path("api/v1/agents/<str:agent>/", include("memory.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", api_docs, name="api-docs"),
    re_path(r"^api/", errors.unknown_address),
    path("healthz", health.LiveView.as_view(), name="healthz"),
    path("readyz", health.ReadyView.as_view(), name="readyz"),
    path("metrics", system.figures, name="metrics"),
]

handler400 = errors.handle_400
handler403 = errors.handle_403
handler404 = errors.handle_404
handler429 = errors.handle_429
handler500 = errors.handle_500
