"""Keys of model servers at rest: encrypted with SECRET_KEY, so that a copy of the database
without it gives none away."""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class SealBroken(Exception):
    """The key was sealed with another SECRET_KEY, or its text was damaged."""


def seal(key: str, secret: str) -> str:
    """Return `key` encrypted with `secret`, for the database; '' for ''."""
    return _fernet(secret).encrypt(key.encode()).decode() if key else ""


def unseal(sealed: str, secret: str) -> str:
    """Return the key again. Raises SealBroken."""
    try:
        return _fernet(secret).decrypt(sealed.encode()).decode() if sealed else ""
    except InvalidToken as error:
        raise SealBroken from error


def _fernet(secret: str) -> Fernet:
    # a key of its own for this use (RFC 5869): what else SECRET_KEY signs tells nothing of it
    derived = HKDF(SHA256(), length=32, salt=None, info=b"hippo model keys").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
