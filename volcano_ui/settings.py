"""Settings: one file, every value from the environment through env.py. docs/settings.md lists them."""

from __future__ import annotations

from csp.constants import NONCE, NONE, SELF

from volcano_ui import env, logs, valkey

BASE_DIR = env.PROJECT
DATA = env.directory("DATA", BASE_DIR / "data")
PORT = env.number("PORT", 8000, least=1, most=65535)
LISTEN = env.text("LISTEN", "127.0.0.1")
# The Kubernetes API, over TLS; 8443 beside 8000. Without files of one's own an authority is made in DATA/pki.
API_PORT = env.number("API_PORT", PORT + 443 if PORT + 443 <= 65535 else PORT - 443, least=1, most=65535)
API_CERTIFICATE = env.file("API_CERTIFICATE")
API_CERTIFICATE_KEY = env.file("API_KEY")
API_CERTIFICATE_CA = env.file("API_CA")
NODES = env.number("NODES", 0, most=100_000)
JOB_WORKERS = env.number("JOB_WORKERS", 1, least=1, most=64)  # processes that share out the jobs
LOG_DAYS = env.number("LOG_DAYS", 14, least=0, most=36_500)  # how long logs of pods that are gone stay
LOG_MEGABYTES = env.number("LOG_MEGABYTES", 2048, least=1)  # how large all logs together may grow
HOST_PATHS = env.directories("HOST_PATHS")  # below them anybody's pods may mount directories of this machine
NODE_LOST_S = env.number("NODE_LOST_S", 60, least=1, most=86_400)  # from NotReady to giving up a node's pods
NODE_NAME = env.text("NODE_NAME")  # of this machine as a node; its host name when empty

SECRET_KEY = env.secret("SECRET_KEY", DATA / "secret-key")
DEBUG = env.flag("DEBUG", default=False)
HTTPS = env.flag("HTTPS", default=False)
HOSTS = env.words("HOSTS")
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *HOSTS]
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in HOSTS] if HTTPS else []

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "volcano_ui",
    "cluster",
    "scheduler",
    "dashboard",
    "queues",
    "jobs",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.pages.errors.DatabaseTrouble",
]

ROOT_URLCONF = "volcano_ui.urls"
ASGI_APPLICATION = "volcano_ui.asgi.application"

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
                "csp.context_processors.nonce",
            ]
        },
    }
]

DATABASES = {"default": env.database(DATA / "db.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Who may come in.

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "accounts:login"

# Browsers share cookies between the ports of a host: the port in the name keeps two systems apart.
SESSION_COOKIE_NAME = f"volcano_ui_session_{PORT}"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_NAME = f"volcano_ui_csrf_{PORT}"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SECURE = HTTPS
CSRF_FAILURE_VIEW = "dashboard.pages.errors.csrf"

X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        # CodeMirror makes its style sheet at run time; the nonce is sent only where a page asks for it.
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# A pasted YAML document of thousands of objects fits; a form has few fields.
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

# Messages between processes.

REDIS_URL = env.redis_url("REDIS_URL") or valkey.url(DATA)

CELERY_BROKER_URL = valkey.broker_url(REDIS_URL)
CELERY_TASK_DEFAULT_QUEUE = "controllers"
CELERY_BEAT_SCHEDULE = {
    "clean": {"task": "cluster.tasks.clean", "schedule": 60.0, "options": {"expires": 60.0}},
    "clean operations": {"task": "jobs.tasks.clean", "schedule": 60.0, "options": {"expires": 60.0}},
    "operations": {"task": "jobs.tasks.advance", "schedule": 1.0, "options": {"expires": 1.0}},
}

# Which kind of cluster this is (cluster.backend).
BACKEND = "cluster.api.embedded.Embedded"

# How long the change log keeps what has been superseded.
HISTORY_HOURS = env.number("HISTORY_HOURS", 24, least=1)
# How long events stay: long enough to explain yesterday's failure. Kubernetes keeps them one hour.
EVENT_HOURS = env.number("EVENT_HOURS", 24, least=1)
# How long a deleted job can be looked up.
JOB_HISTORY_DAYS = env.number("JOB_HISTORY_DAYS", 30, least=1, most=36_500)
# How long the audit keeps who did what.
AUDIT_DAYS = env.number("AUDIT_DAYS", 90, least=1, most=36_500)

# Files for the browser: `manage.py assets` builds them and gives them names with a hash.

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / ".cache" / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Applications bring no files for the browser; the bundle and `static` have all of them.
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"},
}

USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = logs.configuration()
