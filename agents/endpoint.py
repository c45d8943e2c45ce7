"""One declaration of what an endpoint takes and gives: checked, and in the OpenAPI schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from django.http import UnreadablePostError
from django.utils import translation
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_BODY_DEPTH = 64
_TOO_DEEP = f"This JSON is nested too deeply; at most {MAX_BODY_DEPTH} levels."
_ANSWERS = {
    400: "Something in the request is wrong; `fields` says where.",
    401: "There is no key, or not a live one.",
    403: "This is for operators.",
    404: "There is no such thing, or it is another's.",
    406: "Answers are JSON.",
    409: "The present state does not allow it; the message names the choices.",
    411: "Bodies come with a Content-Length.",
    412: "Somebody else changed it: `If-Match` is not its ETag.",
    413: "The body is too large.",
    415: "Bodies are JSON.",
    422: "This Idempotency-Key came before with another request.",
    429: "The key's rate limit is reached; `Retry-After` says when to go on.",
    503: "A database does not answer, or the memories are being moved; try again shortly.",
}
Handler = TypeVar("Handler", bound=Callable[..., Response])


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses what it does not know, and a query parameter that is given twice."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the checked values. Raises ValidationError."""
        check_names(data, self.fields)
        return super().to_internal_value(data)


class NoParameters(StrictSerializer):
    """Nothing may be given."""


class ErrorBody(serializers.Serializer[Any]):
    """What went wrong: `code` for programs, `message` for people, with the next step."""

    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.CharField(), required=False, help_text="What is wrong with each field."
    )


class ErrorAnswer(serializers.Serializer[Any]):
    """The one shape of every error."""

    error = ErrorBody()


class LengthRequired(ParseError):
    """A body in chunks: Django would take it for an empty one."""

    status_code = 411
    default_code = "length_required"
    default_detail = "Send the body with a Content-Length, not in chunks."


class BodyTooLarge(ParseError):
    """A body past `MAX_BODY_BYTES`."""

    status_code = 413
    default_code = "too_large"


class BoundedJSONParser(BaseParser):
    """JSON in UTF-8, of bounded size and depth.

    No JSONParser: of one of those Django reads the body itself, and only 2.5 MB.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        """Return the parsed body. Raises ParseError, BodyTooLarge."""
        try:
            raw = stream.read(MAX_BODY_BYTES + 1)
        except UnreadablePostError:
            raise ParseError("The body did not arrive whole.") from None
        if len(raw) > MAX_BODY_BYTES:
            raise BodyTooLarge(f"A body has at most {MAX_BODY_BYTES} bytes; send less at once.")
        try:
            value = json.loads(raw.decode(), parse_constant=_refuse)
        except RecursionError:
            raise ParseError(_TOO_DEEP) from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from None
        if raw.count(b"[") + raw.count(b"{") > MAX_BODY_DEPTH:
            _check_depth(value)
        return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


def _check_depth(value: Any) -> None:
    """Raise ParseError for what is deeper than anything here needs: recursion costs."""
    level = [value]
    for _ in range(MAX_BODY_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    if any(isinstance(each, dict | list) for each in level):
        raise ParseError(_TOO_DEEP)


class SayableJSONRenderer(JSONRenderer):
    """JSON that can be encoded, though an error repeats half a surrogate pair of a caller's."""

    def render(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Return `data` as JSON in UTF-8."""
        try:
            return super().render(data, *args, **kwargs)
        except UnicodeEncodeError:
            return super().render(_sayable(data), *args, **kwargs)


def _sayable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {_sayable(name): _sayable(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(each) for each in value]
    return value


class ApiView(APIView):
    """A view of endpoints. Its messages are for programmers, in English."""

    parser_classes = [BoundedJSONParser]
    renderer_classes = [SayableJSONRenderer]

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer in English, whatever the server's language is."""
        with translation.override("en"):
            response = super().dispatch(request, *args, **kwargs)
        response.headers["Content-Language"] = "en"
        return response

    def arrange(
        self, query: Any, body: Any, query_of: type[Serializer[Any]], body_of: Any
    ) -> tuple[Any, Any]:
        """Return query and body as they are to be checked."""
        return query, body


IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description=(
        "1 to 255 visible ASCII characters. The same request under the same key is carried out "
        "once, however often it is sent within 24 hours."
    ),
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of the version that you read; another version answers 412.",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    str,
    OpenApiParameter.HEADER,
    description="An ETag; while it is still the memory's, the answer is 304 without a body.",
)


def endpoint(
    operation_id: str,
    *,
    query: type[Serializer[Any]] = NoParameters,
    body: type[Serializer[Any]] | None = None,
    answers: Mapping[int, Any],
    errors: tuple[int, ...] = (),
    headers: tuple[OpenApiParameter, ...] = (),
    tags: tuple[str, ...] = (),
    partial: bool = False,
) -> Callable[[Handler], Handler]:
    """Make a view's method an endpoint: it gets the checked `query` and `body`.

    `answers` maps statuses to serializers, or to None for an empty answer; `errors` are the
    statuses besides those that every endpoint has. A `partial` body may leave out any field.
    """
    common = (400, 401, 404, 406, 429, 503, *((411, 413, 415) if body else ()), *errors)

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def handle(view: Any, request: Request, **kwargs: Any) -> Response:
            given_query: Any = check_encoding(request)
            if body and "HTTP_TRANSFER_ENCODING" in request.META:
                raise LengthRequired
            given_body: Any = request.data if body else None
            if body and not isinstance(given_body, Mapping):
                raise ParseError("The body must be a JSON object.")
            given_query, given_body = view.arrange(given_query, given_body, query, body)
            found = {"query": _checked(query, given_query)}
            if body:
                found["body"] = _checked(body, given_body, partial=partial)
            return handler(view, request, **found, **kwargs)

        documented = extend_schema(
            operation_id=operation_id,
            summary=(handler.__doc__ or "").split("\n")[0].rstrip("."),
            parameters=[*([query] if query().fields else []), *headers],
            request=body,
            responses={
                **{status: answer or OpenApiResponse() for status, answer in answers.items()},
                **{
                    status: OpenApiResponse(ErrorAnswer, _ANSWERS[status])
                    for status in sorted(set(common))
                },
            },
            tags=list(tags),
        )
        return documented(handle)  # type: ignore[return-value]

    return decorate


def check_names(data: Any, fields: Any) -> None:
    """Raise ValidationError for a name that is no field, or a parameter given twice or blank.

    A blank parameter would count as absent, and a filter that is left out filters nothing.
    """
    problems = {}
    for name in data:
        if name not in fields or fields[name].read_only:
            problems[str(name)] = "There is no such parameter."
        elif isinstance(fields[name], serializers.ListField) or not hasattr(data, "getlist"):
            continue
        elif is_repeated(data, name):
            problems[name] = "Give this once."
        elif data[name] == "" and not getattr(fields[name], "allow_blank", False):
            problems[name] = "This is blank; give it a value or leave it out."
    if problems:
        raise serializers.ValidationError(problems)


def is_repeated(data: Any, name: str) -> bool:
    """Return whether a query parameter is given more than once; a body's field never is."""
    return hasattr(data, "getlist") and len(data.getlist(name)) > 1


def check_encoding(request: Request) -> Any:
    """Return the query parameters. Raises ParseError where they are not UTF-8.

    Django would put U+FFFD for what it cannot read, and two users could become one.
    """
    given = request.META.get("QUERY_STRING", "")
    try:
        unquote_to_bytes(given.encode("latin-1")).decode()  # as WSGI hands bytes on
    except UnicodeError:
        raise ParseError("The query string is not UTF-8.") from None
    return request.query_params


def _checked(serializer: type[Serializer[Any]], data: Any, *, partial: bool = False) -> Any:
    checked = serializer(data=data, partial=partial)
    checked.is_valid(raise_exception=True)
    return checked.validated_data
