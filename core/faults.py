"""What a fault of Redis means: may it pass, and how is it said without giving anything away.

It must not talk to Redis.
"""

from urllib.parse import urlsplit

from redis import exceptions as fault

from core.errors import ConfigError

# A cluster without its nodes raises what is no RedisError.
FAULTS = (fault.RedisError, fault.RedisClusterException, OSError)

URL_FORM = "redis://:PASSWORD@HOST:6379/0, or rediss:// for TLS"


def check_url(url: str) -> str:
    """Where `url` leads, without user and password. Raises ConfigError."""
    wrong = ConfigError(f"REDIS_URL is wrong: it must look like {URL_FORM}")
    try:
        parts = urlsplit(url)
        place = parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}"
    except ValueError:
        raise wrong from None  # the cause would quote the URL, password and all
    if parts.scheme not in ("redis", "rediss", "unix") or not (parts.hostname or parts.path):
        raise wrong
    if parts.username and not parts.password:
        raise ConfigError(
            f"REDIS_URL for {place} has a user but no password. A password alone is written after "
            f"a colon: {URL_FORM}"
        )
    return place


def is_read_only(err: Exception) -> bool:
    """Whether the server is a replica: a failover is under way."""
    # Redis before 7 wraps an error inside a script in a text of its own: the class is not enough.
    return isinstance(err, fault.ReadOnlyError) or "READONLY" in str(err)


def is_out_of_memory(err: Exception) -> bool:
    """Whether the server has no room and evicts nothing."""
    return isinstance(err, fault.OutOfMemoryError) or "OOM command" in str(err)


def is_refused(err: Exception) -> bool:
    """Whether user or password are wrong."""
    refused = (fault.AuthenticationError, fault.AuthorizationError, fault.NoPermissionError)
    # A fault while connecting comes wrapped in a ConnectionError.
    return isinstance(err, refused) or isinstance(err.__cause__, refused)


def may_pass(err: Exception) -> bool:
    """Whether the same call may succeed a little later."""
    if is_refused(err):
        return False
    passing = (
        fault.ConnectionError,
        fault.TimeoutError,
        fault.ClusterError,
        fault.RedisClusterException,
        fault.TryAgainError,
        OSError,
    )
    return isinstance(err, passing) or is_read_only(err)


def plain(err: Exception) -> str:
    """What happened, without host, port, user, password or arguments."""
    if is_out_of_memory(err):
        return "Redis is out of memory; nothing was saved."
    if is_read_only(err):
        return "Redis takes no writes at the moment; nothing was saved."
    if may_pass(err):
        return "Redis does not answer; nothing is known to be saved."
    return "Redis refused a command; nothing was saved."


def no_answer(place: str, err: Exception) -> str:
    """What to tell the operator when the server at `place` cannot be used at start."""
    if is_refused(err):
        return f"Redis at {place} refuses the user or password in REDIS_URL."
    return f"No Redis answers at {place} (REDIS_URL): {type(err).__name__}."
