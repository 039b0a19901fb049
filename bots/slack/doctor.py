"""Whether Slack would work as configured: tokens, identity, scopes, socket; and what to do if not.

It never shows a token, not even a part of one.
"""

from pydantic import SecretStr

from bots.process import Check
from bots.slack.api import Identity, SlackApi, SlackFault
from bots.slack.manifest import wanted_scopes
from bots.slack.settings import SlackSettings

APPS = "https://api.slack.com/apps → your app"
_WHY_SCOPE = {
    "channels:history": "without it follow-ups in public channels never arrive",
    "groups:history": "without it follow-ups in private channels never arrive",
    "im:history": "without it direct messages never arrive",
    "mpim:history": "without it follow-ups in group messages never arrive",
    "app_mentions:read": "without it mentions never arrive",
    "assistant:write": "without it there is no status line",
    "reactions:read": "without it 🛑 stops nothing",
    "files:read": "without it attachments cannot be read",
    "users:read": "without it people have no names",
}
_REMEDIES = {
    "invalid_auth": f"Copy the token anew: {APPS} → OAuth & Permissions (xoxb-) or "
    "Basic Information → App-Level Tokens (xapp-).",
    "not_allowed_token_type": "This is the wrong kind of token; see the two checks above.",
    "token_revoked": f"The token was revoked; install the app again: {APPS} → Install App.",
    "account_inactive": f"The app was removed; install it again: {APPS} → Install App.",
    "connection": "Slack cannot be reached from here; check the network, a proxy (HTTPS_PROXY) "
    "and SLACK_API_URL.",
    "missing_scope": f"{APPS} → Basic Information → App-Level Tokens: the token needs "
    "connections:write.",
}


async def doctor(settings: SlackSettings) -> list[Check]:
    """Every check that can be made; those of the network only once the tokens look right."""
    checks = _forms(settings)
    token = settings.slack_bot_token
    if not all(check.is_ok for check in checks) or token is None:
        return checks
    api = SlackApi(token.get_secret_value(), settings.slack_api_url)
    try:
        checks += await _identity(api)
    finally:
        await api.close()
    if settings.slack_mode == "socket" and settings.slack_app_token:
        checks.append(await _socket(settings.slack_app_token, settings.slack_api_url))
    return checks


def _forms(settings: SlackSettings) -> list[Check]:
    bot_remedy = f"{APPS} → OAuth & Permissions → Bot User OAuth Token."
    checks = [_form("SLACK_BOT_TOKEN", settings.slack_bot_token, "xoxb-", bot_remedy)]
    if settings.slack_mode == "socket":
        app_remedy = f"{APPS} → Basic Information → App-Level Tokens (with connections:write)."
        checks.append(_form("SLACK_APP_TOKEN", settings.slack_app_token, "xapp-", app_remedy))
    else:
        secret = settings.slack_signing_secret
        is_set = secret is not None and len(secret.get_secret_value()) >= 16
        remedy = f"{APPS} → Basic Information → Signing Secret; or use SLACK_MODE=socket."
        detail = "set" if is_set else "needed for SLACK_MODE=http, and not set"
        checks.append(Check("SLACK_SIGNING_SECRET", is_set, detail, remedy))
    return checks


def _form(name: str, token: SecretStr | None, prefix: str, remedy: str) -> Check:
    value = token.get_secret_value() if token else ""
    if value.startswith(prefix):
        return Check(name, True, f"set ({prefix}…)")
    if not value:
        return Check(name, False, "not set", remedy)
    other = next((p for p in ("xoxb-", "xapp-", "xoxp-", "xoxe") if value.startswith(p)), "")
    swapped = other in ("xoxb-", "xapp-")
    detail = f"should start with {prefix}" + (f", but starts with {other}" if other else "")
    hint = "The two tokens look swapped: exchange them.\n" if swapped else ""
    return Check(name, False, detail, hint + remedy)


async def _identity(api: SlackApi) -> list[Check]:
    try:
        identity = await api.identity()
    except SlackFault as fault:
        return [Check("auth.test", False, fault.code, _remedy(fault))]
    detail = f"{identity.team_name} ({identity.team}), bot user {identity.user}"
    return [Check("auth.test", True, detail), _scopes(identity)]


def _scopes(identity: Identity) -> Check:
    missing = sorted(wanted_scopes() - identity.scopes)
    if not missing:
        return Check("scopes", True, f"all {len(wanted_scopes())} of the manifest")
    lines = [f"{scope}: {_WHY_SCOPE.get(scope, 'needed')}" for scope in missing]
    remedy = "\n".join(lines) + (
        f"\n{APPS} → App Manifest: paste what `footnote slack manifest` prints, save, and\n"
        "install the app again. That also subscribes to the message events."
    )
    return Check("scopes", False, f"missing {', '.join(missing)}", remedy)


async def _socket(app_token: SecretStr, base_url: str) -> Check:
    api = SlackApi(app_token.get_secret_value(), base_url)
    try:
        await api.call("apps.connections.open")
    except SlackFault as fault:
        return Check("socket", False, fault.code, _remedy(fault))
    finally:
        await api.close()
    return Check("socket", True, "Slack offers a connection")


def _remedy(fault: SlackFault) -> str:
    return _REMEDIES.get(fault.code, f"See https://api.slack.com/methods for “{fault.code}”.")
