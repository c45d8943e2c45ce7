"""Health over HTTP, for whoever asks."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.serializers import HealthAnswer
from memory.services.health.readiness import check_health


class HealthView(APIView):
    """Open to everybody; says nothing secret, and is never cached."""

    authentication_classes = []
    permission_classes = []

    def answer(self, status: str, parts: dict[str, str]) -> Response:
        """Return 503 where nothing can be served; some parts may be reduced."""
        code = 503 if status == "down" else 200
        return Response(
            {"status": status, "parts": parts}, status=code, headers={"Cache-Control": "no-store"}
        )


class LiveView(HealthView):
    """Whether the process runs."""

    @extend_schema(operation_id="healthz", responses={200: HealthAnswer}, tags=["health"])
    def get(self, request: Request) -> Response:
        """Answer, touching nothing."""
        return self.answer("ok", {})


class ReadyView(HealthView):
    """Whether requests can be served."""

    @extend_schema(
        operation_id="readyz", responses={200: HealthAnswer, 503: HealthAnswer}, tags=["health"]
    )
    def get(self, request: Request) -> Response:
        """Ask every part: 503 without the control database, else `ok` or `reduced`."""
        health = check_health()
        return self.answer(health.status, health.parts)
