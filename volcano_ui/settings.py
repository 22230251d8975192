"""Settings: one file, every value from the environment through env.py. docs/settings.md lists them."""

from __future__ import annotations

from urllib.parse import urlsplit

from csp.constants import NONCE, NONE, SELF

from cluster.remote.http import target as targets
from cluster.several import addresses, entries
from node.leftovers import AtStop
from volcano_ui import env, logs, valkey

BASE_DIR = env.PROJECT
STATE = env.directory("DATA", env.default_state_directory())
# Each of several clusters has its own processes; CLUSTER is the one that these processes serve.
CLUSTERS = env.clusters("CLUSTERS", "KUBECONFIG", "CONTEXT")
CLUSTER = env.one_of_clusters("CLUSTER", CLUSTERS)
CLUSTER_NAME = CLUSTER.name if CLUSTER else ""
PREFIX = addresses.prefix(CLUSTER.name) if CLUSTER else ""  # of the pages' addresses
# The cluster behind the pages: one with an API of its own, or (None) the embedded one. Each has a state of its own.
TARGET = env.target_of(CLUSTER) if CLUSTER else env.target("KUBECONFIG", env.text("CONTEXT"))
DATA = targets.state_directory(STATE, TARGET)
# The first of several clusters stores the accounts of all.
HOME = DATA if CLUSTER in (None, *CLUSTERS[:1]) else targets.state_directory(STATE, env.target_of(CLUSTERS[0]))
# The name of this cluster in role bindings; "" is the one that stores the accounts.
ROLES_OF = "" if HOME == DATA else DATA.name
WAYS = entries.WAYS
# Empty: one of the first two, by what the cluster serves.
WAY = (CLUSTER.way if CLUSTER else "") or env.one_of("WAY", WAYS)
LEASE_NAMESPACE = env.text(
    "LEASE_NAMESPACE", "volcano-system"
)  # of the Lease by which one installation works on that cluster
# Where that cluster's API server finds our admission webhooks; None: there are none.
WEBHOOKS = env.webhooks("WEBHOOKS", WAY, has_several=bool(CLUSTERS))
IMPERSONATE = env.flag(
    "IMPERSONATE", default=False
)  # people act there as themselves, with the rights that it gives them
IMPERSONATE_USER_PREFIX = env.prefix("IMPERSONATE_USER_PREFIX")  # before the names of accounts there
IMPERSONATE_GROUP_PREFIX = env.prefix("IMPERSONATE_GROUP_PREFIX")
# The commands that messages name.
UP_COMMAND = env.up_command()
LOGIN_COMMAND = env.command("loginlink")
KUBECONFIG_COMMAND = env.command("kubeconfig")
MANAGE_COMMAND = ".venv/bin/python manage.py" if env.IS_CLONE else "volcano-ui"
ONLY = env.part("ONLY", has_several=bool(CLUSTERS))  # which of the programs `up` starts; empty: all
# The name of this `up` among others on one database; the same when it starts again.
INSTANCE = env.instance(DATA)
PORT = env.number("PORT", 8000, least=1, most=65535)
LISTEN = env.text("LISTEN", "127.0.0.1")
# The Kubernetes API, over TLS; 8443 beside 8000. Without files of one's own an authority is made in DATA/pki.
API_PORT = env.number("API_PORT", PORT + 443 if PORT + 443 <= 65535 else PORT - 443, least=1, most=65535)
API_CERTIFICATE = env.file("API_CERTIFICATE")
API_CERTIFICATE_KEY = env.file("API_KEY")
API_CERTIFICATE_CA = env.file("API_CA")
WEBHOOK_PORT = env.number("WEBHOOK_PORT", PORT + 1443 if PORT + 1443 <= 65535 else PORT - 1443, least=1, most=65535)
# How much may wait in a server process to be sent to slow clients; a quarter of it to those of one user.
QUEUE_MEGABYTES = env.number("QUEUE_MEGABYTES", 256, least=16, most=65_536)
NODES = env.number("NODES", 0, most=100_000)
# What becomes of pods that run on this machine when `up` is stopped.
RUNNING: AtStop = AtStop(env.one_of("RUNNING", tuple(AtStop)) or AtStop.LEAVE)
JOB_WORKERS = env.number("JOB_WORKERS", 1, least=1, most=64)  # processes that share out the jobs
LOG_FILES = env.flag("LOG_FILES", default=True)  # programs write to DATA/logs, otherwise to where `up` does
LOG_DAYS = env.number("LOG_DAYS", 14, least=0, most=36_500)  # how long logs of pods that are gone stay
LOG_MEGABYTES = env.number("LOG_MEGABYTES", 2048, least=1)  # how large all logs together may grow
ALLOW_UNWALLED = env.flag("ALLOW_UNWALLED", default=False)  # pods of everybody, on a machine without a wall round them
# The engine that runs images on this machine: auto, none, podman, docker or a path.
ENGINE = env.text("ENGINE", "auto")
# Whose network pods have: their namespace's own, one without a way out, or this machine's.
POD_NETWORK = env.one_of("POD_NETWORK", ("own", "closed", "machine")) or "own"
DEVICES = env.devices("DEVICES")  # of this machine, which pods get to themselves, beside GPUs that are found
HOST_PATHS = env.directories("HOST_PATHS")  # below them anybody's pods may mount directories of this machine
NODE_LOST_S = env.number("NODE_LOST_S", 60, least=1, most=86_400)  # from NotReady to giving up a node's pods
NODE_NAME = env.text("NODE_NAME")  # of this machine as a node; its host name when empty
# For `manage.py agent` on another machine, which joins as a node: the API, the token, and the authority to trust.
SERVER = env.text("SERVER")
JOIN_TOKEN = env.text("JOIN_TOKEN")
SERVER_CA = env.text("SERVER_CA")

SECRET_KEY = env.secret("SECRET_KEY", HOME / "secret-key")
DEBUG = env.flag("DEBUG", default=False)
HTTPS = env.flag("HTTPS", default=False)
HOSTS = env.words("HOSTS")
# The proxies whose headers X-Forwarded-For and X-Forwarded-Proto are trusted.
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
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
    "dashboard.pages.caching.NoStore",
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

SYNCHRONOUS = env.one_of("SYNCHRONOUS", ("normal", "full")) or "normal"  # of SQLite
DATABASES = {"default": env.database(DATA / "db.sqlite3", CLUSTER_NAME, instance=INSTANCE, synchronous=SYNCHRONOUS)}
ACCOUNTS_DATABASE = "default"
if HOME != DATA:
    ACCOUNTS_DATABASE = "accounts"
    DATABASES[ACCOUNTS_DATABASE] = env.database(
        HOME / "db.sqlite3", CLUSTERS[0].name, instance=INSTANCE, synchronous=SYNCHRONOUS
    )
    DATABASE_ROUTERS = ["cluster.access.router.Accounts"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Authentication.

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
LOGIN_REDIRECT_URL = "dashboard:overview"
LOGOUT_REDIRECT_URL = "accounts:login"

# The OpenID Connect provider whose accounts can log in, if one is set.
OIDC_ISSUER = env.issuer("OIDC_ISSUER")
OIDC_NAME = env.text("OIDC_NAME", urlsplit(OIDC_ISSUER).hostname or "")  # as people call the provider
OIDC_CLIENT_ID = env.text("OIDC_CLIENT_ID", "volcano-ui")
OIDC_CLIENT_SECRET = env.content("OIDC_CLIENT_SECRET_FILE")
OIDC_SCOPES = env.words("OIDC_SCOPES") or ["openid", "profile"]
OIDC_NAME_CLAIM = env.text("OIDC_NAME_CLAIM", "preferred_username")
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", "groups")
OIDC_ADMIN_GROUP = env.text("OIDC_ADMIN_GROUP")
OIDC_SESSION_HOURS = env.number("OIDC_SESSION_HOURS", 12, least=1, most=8760)  # then they log in at the provider again
PASSWORD_LOGIN = env.flag("PASSWORD_LOGIN", default=True)
env.check_logins(OIDC_ISSUER, OIDC_SCOPES, OIDC_ADMIN_GROUP, passwords=PASSWORD_LOGIN)

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

REDIS_URL = env.redis_url("REDIS_URL", CLUSTER_NAME) or valkey.url(DATA)
REDIS_PREFIX = env.redis_prefix(SECRET_KEY, DATABASES["default"])  # of every key and channel there

CELERY_BROKER_URL = valkey.broker_url(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "global_keyprefix": REDIS_PREFIX,
    "visibility_timeout": 60,
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    # Publishing only; worker and beat wait for their broker by broker_connection_max_retries.
    "max_retries": 0,
}
CELERY_TASK_DEFAULT_QUEUE = "controllers"
CELERY_BEAT_SCHEDULE = {
    "clean": {"task": "cluster.tasks.clean", "schedule": 60.0, "options": {"expires": 60.0}},
    "clean operations": {"task": "jobs.tasks.clean", "schedule": 60.0, "options": {"expires": 60.0}},
    "idle room": {"task": "scheduler.tasks.check_idle_room", "schedule": 10.0, "options": {"expires": 10.0}},
    "operations": {"task": "jobs.tasks.advance", "schedule": 1.0, "options": {"expires": 1.0}},
}

# Which kind of cluster this is (cluster.backend).
BACKEND = "cluster.api.embedded.Embedded"
if TARGET:
    BACKEND = "cluster.remote.in_place.InPlace" if WAY == "in-place" else "cluster.remote.backend.Remote"

# How long the change log keeps superseded changes.
HISTORY_HOURS = env.number("HISTORY_HOURS", 24, least=1)
# How long events stay: long enough to explain yesterday's failure. Kubernetes keeps them one hour.
EVENT_HOURS = env.number("EVENT_HOURS", 24, least=1)
# How long a deleted job can be looked up.
JOB_HISTORY_DAYS = env.number("JOB_HISTORY_DAYS", 30, least=1, most=36_500)
# How long decisions of the scheduler can be looked up.
DECISION_DAYS = env.number("DECISION_DAYS", 30, least=1, most=36_500)
# How long the audit keeps who did what.
AUDIT_DAYS = env.number("AUDIT_DAYS", 90, least=1, most=36_500)

# Files for the browser: `manage.py assets` builds them and gives them names with a hash.

STATIC_URL = f"/{PREFIX}static/"
STATIC_ROOT = BASE_DIR / ".cache" / "static" if env.IS_CLONE else BASE_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"] if env.IS_CLONE else []
# Applications bring no files for the browser; the bundle and `static` have all of them.
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "volcano_ui.static_files.Storage"},
}

USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = logs.configuration()
