"""The product's WSGI application with one view more: the least an authenticated view can do."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()  # what follows needs the apps

from django.urls import path  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from agents.authentication import HasKey, KeyAuthentication  # noqa: E402

_OBJECTS = [{"id": number, "name": f"memory {number}", "score": 0.5} for number in range(10)]


class BareView(APIView):
    """Ten constant objects for whoever has a key."""

    authentication_classes = [KeyAuthentication]
    permission_classes = [HasKey]

    def get(self, request: Request) -> Response:
        """Return them."""
        return Response(_OBJECTS)


import_module(settings.ROOT_URLCONF).urlpatterns.insert(0, path("api/bare/", BareView.as_view()))
