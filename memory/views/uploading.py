"""How much of an upload is kept while it comes in."""

from __future__ import annotations

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler


class LimitedUpload(FileUploadHandler):
    """Lets what is beyond the limit by, unkept: the form says then that it is too much."""

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes | None:
        """Return the piece for the next handler, or None once there is more than may be."""
        return raw_data if start <= settings.IMPORT_MAX_MB * 1024 * 1024 else None

    def file_complete(self, file_size: int) -> UploadedFile | None:
        """Leave the file to the next handler."""
        return None
