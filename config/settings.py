"""Settings: every knob an environment variable; a wrong value stops the start.

README.md, "Settings", lists the variables.
"""

from __future__ import annotations

import zoneinfo
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from config.environment import env, model_key, number, seconds, secret_key, switch

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(env.str("DATA_DIR", str(BASE_DIR / "data"))).resolve()
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
MEMORY_DIR = DATA_DIR / "memory"
"""The only folder that an agent's SQLite file can be in."""


def gettext_noop(message: str) -> str:
    """Mark a text for translation; Django's own would read the settings, not yet there."""
    return message


SECRET_KEY = secret_key(DATA_DIR)
DEBUG = switch("DEBUG")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "template_partials",
    "csp",
    "agents",
    "memory",
    # after ours, whose templates come first
    "allauth",
    "allauth.account",
    "allauth.mfa",
]

MIDDLEWARE = [
    "agents.request_log.RequestLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "agents.preferences.PreferencesMiddleware",
    "agents.first_run.FirstRunMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "agents.sessions.ExpiredSessionMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "memory.views.faults.StoreMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agents.preferences.appearance",
            ]
        },
    }
]

# --- databases -------------------------------------------------------------------------

SQLITE_OPTIONS = {
    "timeout": 30,
    # IMMEDIATE: a transaction that reads first cannot fail when it comes to write
    "transaction_mode": "IMMEDIATE",
    # FULL: a memory that was acknowledged survives a power cut, not only a killed process
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536;"
        "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
        # what is erased is overwritten, whatever SQLite was built to do
        "PRAGMA secure_delete=ON;"
    ),
}
_MYSQL_DRIVER = gettext_noop(
    "The MySQL driver is missing; install its headers (apt install default-libmysqlclient-dev "
    "pkg-config gcc python3-dev) and start ./run again."
)
MYSQL_OPTIONS = {"charset": "utf8mb4", "isolation_level": "read committed", "connect_timeout": 5}


def _has_mysql_driver() -> bool:
    try:
        import MySQLdb  # noqa: F401
    except ImportError:  # absent, or without the library it was built for
        return False
    return True


def _database(url: str, name: str) -> dict[str, Any]:
    """Return Django's settings for a database URL, mysql:// or sqlite:///.

    Raises ImproperlyConfigured for any other scheme.
    """
    try:
        parsed: dict[str, Any] = dict(env.db_url_config(url))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error
    engine = parsed.get("ENGINE", "")
    if engine.endswith("mysql"):
        if not _has_mysql_driver():
            raise ImproperlyConfigured(f"{name}: {_MYSQL_DRIVER}")
        parsed["OPTIONS"] = {**MYSQL_OPTIONS, **parsed.get("OPTIONS", {})}
        parsed["CONN_MAX_AGE"] = 600
        parsed["CONN_HEALTH_CHECKS"] = True
        parsed["TEST"] = {"CHARSET": "utf8mb4"}
    elif engine.endswith("sqlite3"):
        parsed["OPTIONS"] = {**SQLITE_OPTIONS, **parsed.get("OPTIONS", {})}
        parsed["CONN_MAX_AGE"] = None
    else:
        raise ImproperlyConfigured(f"{name} must begin with mysql:// or sqlite:///.")
    if parsed.get("NAME") in {None, "", ":memory:"}:
        raise ImproperlyConfigured(f"{name} names no database that is kept.")
    return parsed


if database_url := env.str("DATABASE_URL", ""):
    DATABASES = {"default": _database(database_url, "DATABASE_URL")}
else:
    # no URL: the path may hold characters that mean something in one
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(DATA_DIR / "hippo.sqlite3"),
            "OPTIONS": SQLITE_OPTIONS,
            "CONN_MAX_AGE": None,
        }
    }
MYSQL_OBSTACLE = gettext_noop(
    "MySQL is not configured; set MYSQL_URL=mysql://user:password@host:3306/database."
)
"""Why agents cannot use MySQL, where they cannot."""
if mysql_url := env.str("MYSQL_URL", ""):
    if not mysql_url.startswith("mysql:"):
        raise ImproperlyConfigured("MYSQL_URL must begin with mysql://.")
    if _has_mysql_driver():
        DATABASES["mysql"] = _database(mysql_url, "MYSQL_URL")
    else:
        MYSQL_OBSTACLE = _MYSQL_DRIVER
DATABASE_ROUTERS = ["memory.databases.MemoryRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people ----------------------------------------------------------------------------

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "overview"
SIGNUP_OPEN = switch("SIGNUP_OPEN")
"""Whether anybody may make an account; closed by default."""
ACCOUNT_ADAPTER = "agents.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = True
ALLAUTH_TRUSTED_PROXY_COUNT = number("TRUSTED_PROXY_COUNT", 0, least=0)
"""So many proxies in front of us add to X-Forwarded-For; the rest of it anybody can write."""
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Hippo"

# --- what a page may load and do -------------------------------------------------------

CSRF_FAILURE_VIEW = "memory.api.errors.handle_csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

LANGUAGE_CODE = env.str("LANGUAGE_CODE", "zh-hans")
LANGUAGES = [("zh-hans", _("Simplified Chinese")), ("en", _("English"))]
if LANGUAGE_CODE not in dict(LANGUAGES):
    raise ImproperlyConfigured("LANGUAGE_CODE must be zh-hans or en.")
FORMAT_MODULE_PATH = "config.formats"
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.str("TIME_ZONE", "UTC")
if TIME_ZONE not in zoneinfo.available_timezones():
    raise ImproperlyConfigured(f"TIME_ZONE must be a name such as Asia/Shanghai, not {TIME_ZONE}.")
USE_TZ = True

# more memories may be ticked than forms usually have fields
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_500
EMBEDDINGS = env.str("EMBEDDINGS", "")
"""Which model embeds: `embedded`, `endpoint` or `none`; "" for what operators set."""
if EMBEDDINGS not in {"", "embedded", "endpoint", "none"}:
    raise ImproperlyConfigured("EMBEDDINGS must be embedded, endpoint or none.")
EMBEDDING_URL = env.str("EMBEDDING_URL", "")
"""An OpenAI-compatible server; with it, model and key are of the environment, too."""
EMBEDDING_MODEL = env.str("EMBEDDING_MODEL", "")
EMBEDDING_KEY = model_key("EMBEDDING_KEY")
EMBEDDING_BATCH = number("EMBEDDING_BATCH", 32, least=1)
"""So many texts are sent to it at once."""
EMBEDDING_MAX_TOKENS = number("EMBEDDING_MAX_TOKENS", 8_192, least=16)
"""Of a longer text its beginning is sent."""
EMBEDDING_QUERY_SECONDS = seconds("EMBEDDING_QUERY_SECONDS", 1.5)
"""So long a search waits for the vector of its question; then it goes by words."""
if EMBEDDINGS == "endpoint" and not EMBEDDING_URL:
    raise ImproperlyConfigured("EMBEDDINGS=endpoint needs EMBEDDING_URL.")
if (EMBEDDING_MODEL or EMBEDDING_KEY) and not EMBEDDING_URL:
    raise ImproperlyConfigured("EMBEDDING_MODEL and EMBEDDING_KEY need EMBEDDING_URL.")
CHAT_PROVIDER = env.str("CHAT_PROVIDER", "")
"""How the chat model is talked to: `openai`, `anthropic`, `none`; "" for what operators set."""
CHAT_URL = env.str("CHAT_URL", "")
CHAT_MODEL = env.str("CHAT_MODEL", "")
CHAT_KEY = model_key("CHAT_KEY")
if CHAT_PROVIDER not in {"", "openai", "anthropic", "none"}:
    raise ImproperlyConfigured("CHAT_PROVIDER must be openai, anthropic or none.")
if (CHAT_URL or CHAT_MODEL or CHAT_KEY) and not CHAT_PROVIDER:
    raise ImproperlyConfigured("CHAT_URL, CHAT_MODEL and CHAT_KEY need CHAT_PROVIDER.")
if CHAT_PROVIDER in {"openai", "anthropic"} and not CHAT_MODEL:
    raise ImproperlyConfigured("CHAT_PROVIDER needs CHAT_MODEL, the model's name.")
if CHAT_PROVIDER == "openai" and not CHAT_URL:
    raise ImproperlyConfigured("CHAT_PROVIDER=openai needs CHAT_URL.")
if max(len(EMBEDDING_MODEL), len(CHAT_MODEL)) > 200:
    raise ImproperlyConfigured("EMBEDDING_MODEL and CHAT_MODEL have 200 characters at most.")
MODEL_PRIVATE_ADDRESSES = switch("MODEL_PRIVATE_ADDRESSES")
"""Whether a model may be called at a private address, that of this machine among them."""
SEARCH_CACHE_MB = number("SEARCH_CACHE_MB", 256, least=8)
"""Words and vectors that each process keeps in memory, of the scopes it searched last."""
IMPORT_MAX_MB = number("IMPORT_MAX_MB", 100, least=1)
"""So large may a file be that somebody imports."""
JOB_FILES_DIR = DATA_DIR / "jobs"
"""Uploads and exports; web and worker share it, and no URL leads there."""
JOB_FILES_DIR.mkdir(mode=0o700, exist_ok=True)
EVALUATIONS_DIR = DATA_DIR / "evaluations"
"""What `evaluate` measured, to be compared with what it measures next."""
FILE_UPLOAD_TEMP_DIR = JOB_FILES_DIR
FILE_UPLOAD_HANDLERS = [
    "memory.views.uploading.LimitedUpload",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]

# --- static files ----------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / ".static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- the API ---------------------------------------------------------------------------

CACHE_URL = env.str("CACHE_URL", "")
if CACHE_URL.partition("://")[0] not in {"", "redis", "rediss"}:
    raise ImproperlyConfigured(f"CACHE_URL begins with redis:// or rediss://; this is {CACHE_URL}.")
CACHES = {
    # files are shared by all processes of a machine, Redis by those of many
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": CACHE_URL,
        "KEY_PREFIX": "hippo",
        # a Redis that says nothing must not hold up every request
        "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 2},
    }
    if CACHE_URL
    else {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": str(DATA_DIR / "cache"),
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}
if not CACHE_URL:
    (DATA_DIR / "cache").mkdir(mode=0o700, exist_ok=True)
API_RATE_PER_MINUTE = number("API_RATE_PER_MINUTE", 6_000, least=0)
"""Requests of one key in a minute; 0: no limit."""
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "memory.api.errors.explain",
    "URL_FORMAT_OVERRIDE": None,  # `format` is a parameter of the tools
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Hippo",
    "VERSION": "1",
    "DESCRIPTION": (
        "Long-term memory for AI agents. Agents send `Authorization: Bearer hippo_…`; a key "
        "reaches its agent only. Operators use their session."
    ),
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- background work -------------------------------------------------------------------

CELERY_BROKER_URL = env.str("BROKER_URL", "filesystem://")
if CELERY_BROKER_URL.partition("://")[0] not in {"filesystem", "redis", "rediss", "amqp", "amqps"}:
    raise ImproperlyConfigured(
        f"BROKER_URL begins with redis://, amqp:// or filesystem://; this is {CELERY_BROKER_URL}."
    )
if CELERY_BROKER_URL.startswith("filesystem:"):
    _queue = DATA_DIR / "queue"
    _queue.mkdir(mode=0o700, exist_ok=True)
    for _folder in ("messages", "processed", "control"):
        (_queue / _folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        # one folder for both directions: the worker takes what the web puts there
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "processed_folder": str(_queue / "processed"),
        "control_folder": str(_queue / "control"),
        "store_processed": False,
        "polling_interval": 0.1,
    }
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = TIME_ZONE
CELERY_BEAT_SCHEDULER = "config.schedule:Scheduler"
_HOUR = 60 * 60
CELERY_BEAT_SCHEDULE = {
    # a message that waits longer than this is followed by the next one
    "reap-jobs": {
        "task": "memory.tasks.reap_jobs",
        "schedule": 15,
        "options": {"expires": 15},
    },
    "sweep-backlog": {
        "task": "memory.tasks.sweep_backlog",
        "schedule": 60,
        "options": {"expires": 60},
    },
    **{
        kind: {"task": "memory.tasks.enqueue_job", "args": [kind], "schedule": seconds}
        for kind, seconds in {
            "expire": _HOUR,
            "purge_trash": 24 * _HOUR,
            "optimize_indexes": 24 * _HOUR,
        }.items()
    },
}

TRASH_DAYS = number("TRASH_DAYS", 30, least=1)
"""After so many days in the trash a memory is erased."""

# --- metrics ---------------------------------------------------------------------------

METRICS_TOKEN = env.str("METRICS_TOKEN", "")
"""What Prometheus sends to read /metrics; without it only operators who are logged in can."""
if METRICS_TOKEN and (len(METRICS_TOKEN) < 16 or not METRICS_TOKEN.isascii()):
    raise ImproperlyConfigured("METRICS_TOKEN must be 16 characters of ASCII or more.")

# --- logs ------------------------------------------------------------------------------

LOG_LEVEL = env.str("LOG_LEVEL", "INFO").upper()
if LOG_LEVEL not in {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}:
    raise ImproperlyConfigured(
        f"LOG_LEVEL must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {LOG_LEVEL}."
    )
LOG_FORMAT = env.str("LOG_FORMAT", "text").lower()
if LOG_FORMAT not in {"text", "json"}:
    raise ImproperlyConfigured(f"LOG_FORMAT must be text or json, not {LOG_FORMAT}.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"context": {"()": "agents.logs.ContextFilter"}},
    "formatters": {
        "text": {"()": "agents.logs.TextFormatter"},
        "json": {"()": "agents.logs.JsonFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "filters": ["context"],
            "formatter": LOG_FORMAT,
        }
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Django's own handler would say everything a second time in DEBUG
        "django": {"handlers": [], "level": "INFO"},
        # a request has its line from us; a fault's traceback is what these add
        "django.request": {"level": "ERROR"},
        "django.security.csrf": {"level": "ERROR"},
        # a line for every call of a model says too little and too often
        "httpx": {"level": "WARNING"},
        "django.server": {"handlers": [], "level": "CRITICAL"},
        "gunicorn.error": {"handlers": ["console"], "level": "INFO", "propagate": False},
    },
}
