"""Who a Slack user is: the person whom the operator's file names, or the owner of a verified e-mail address."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from backstay.authority import is_plain
from backstay.authority import principal as canonical_name
from backstay.errors import NotVerified, SettingsInvalid, Unreachable
from backstay.yaml_text import read_yaml
from gateways.slack.posting import FAILURES, code_of, is_refusal, not_taken, status_of

_FIX = "ask whoever runs backstay to name you in BACKSTAY_SLACK_USERS"
_ELSEWHERE = "people of other workspaces decide nothing here"
_FOUND_S = 600.0
"""How long it is remembered who has an address; it is only for whom to mention."""
_OUTSIDERS = {
    "deleted": "this account is deactivated",
    "is_bot": "apps decide nothing",
    "is_restricted": "guests decide nothing",
    "is_ultra_restricted": "guests decide nothing",
    "is_stranger": "people of other workspaces decide nothing",
}


def read_people(path: Path | None) -> Mapping[str, str]:
    """Return principals by Slack user; raises SettingsInvalid naming the variable and the fault."""
    if path is None:
        return {}
    try:
        data = read_yaml(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise SettingsInvalid(f"BACKSTAY_SLACK_USERS: {path}: not valid YAML: {' '.join(str(error).split())}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"BACKSTAY_SLACK_USERS: {path} cannot be read: {type(error).__name__}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SettingsInvalid(f"BACKSTAY_SLACK_USERS: {path}: write one line for each person: U123: ana@example.com")
    for user, name in data.items():
        if not isinstance(user, str) or not isinstance(name, str | None):
            raise SettingsInvalid(f"BACKSTAY_SLACK_USERS: {path}: {user}: write U123: ana@example.com, or U123: null")
    named = {user: canonical_name(name or "") for user, name in data.items()}
    for user, name in named.items():
        if not is_plain(data[user] or ""):
            raise SettingsInvalid(f"BACKSTAY_SLACK_USERS: {path}: {user}: {name} holds signs that cannot be seen")
    return named


class People:
    """Know Slack users by the names under which policies know them."""

    def __init__(self, client: AsyncWebClient, team: str, file: Path | None, *, organization: str = "") -> None:
        """`team` is the workspace that the app is installed in, `organization` that of which it is a part, if any.

        Raises SettingsInvalid for a file that is wrong.
        """
        self._client = client
        self._team = team
        self._organization = organization
        self._file = file
        self._found: dict[str, tuple[str, float]] = {}
        read_people(file)

    async def _named(self) -> Mapping[str, str]:
        # Read anew each time, so that somebody who is struck from the file decides nothing from then on.
        return await asyncio.to_thread(read_people, self._file)

    async def principal(self, user: str, teams: Iterable[str | None]) -> str:
        """Return who a user is, whom Slack itself has named; `teams` are the workspaces that it says they are of.

        Raises NotVerified with what to do.
        """
        elsewhere = any(team != self._team for team in teams if team)
        # In an organization Slack names that, or another workspace of it, for people of ours too.
        if elsewhere and not self._organization:
            raise NotVerified(_ELSEWHERE)
        named = await self._named()
        if user not in named:
            return self._by_profile(await self._profile(user), named)
        if not named[user]:
            raise NotVerified("the file of BACKSTAY_SLACK_USERS lets you decide nothing")
        if elsewhere and not self._is_member(await self._profile(user)):
            raise NotVerified(_ELSEWHERE)
        return named[user]

    async def _profile(self, user: str) -> Mapping[str, Any]:
        try:
            answer = await self._client.users_info(user=user)
        except SlackApiError as error:
            if status_of(error) == 429:
                raise Unreachable("Slack is asked too much just now; try again in a moment") from None
            if not is_refusal(error):
                raise Unreachable(f"Slack did not answer ({code_of(error)}); try again") from None
            raise NotVerified(f"Slack does not say who you are ({code_of(error)}); {_FIX}") from None
        except FAILURES:
            raise Unreachable("Slack did not answer; try again") from None
        found: Any = answer.get("user")
        return found if isinstance(found, dict) else {}

    def _by_profile(self, profile: Mapping[str, Any], named: Mapping[str, str]) -> str:
        for mark, why in _OUTSIDERS.items():
            if profile.get(mark):
                raise NotVerified(why)
        if not self._is_member(profile):
            raise NotVerified(_ELSEWHERE)
        shown = str((profile.get("profile") or {}).get("email") or "").strip()
        if not shown:
            raise NotVerified(f"your profile shows this app no e-mail address; {_FIX}")
        if not shown.isascii():
            # In lower case, a foreign character may become a letter of somebody else's address.
            raise NotVerified(f"your e-mail address has characters that are not plain letters; {_FIX}")
        email = canonical_name(shown)
        if profile.get("is_email_confirmed") is not True:
            raise NotVerified(f"Slack has not confirmed your e-mail address; confirm it, or {_FIX}")
        if email in named.values():
            raise NotVerified(f"the file of BACKSTAY_SLACK_USERS gives {email} to another account; {_FIX}")
        return email

    def _is_member(self, profile: Mapping[str, Any]) -> bool:
        """Return whether somebody is of our workspace, of which they may be in several of an organization."""
        if profile.get("is_stranger"):
            return False
        teams = (profile.get("enterprise_user") or {}).get("teams") if self._organization else None
        return self._team in (profile.get("team_id"), *(teams or ()))

    async def users_of(self, principals: Iterable[str]) -> dict[str, str]:
        """Return the Slack users whom these people are, as far as they are found, by principal; raises NotTaken."""
        named = await self._named()
        by_name = {principal: user for user, principal in named.items() if principal}
        found: dict[str, str] = {}
        for principal in principals:
            if principal in by_name:
                found[principal] = by_name[principal]
            elif "@" in principal and (user := await self._looked_up(principal)):
                found[principal] = user
        return found

    async def _looked_up(self, email: str) -> str | None:
        user, until = self._found.get(email, ("", 0.0))
        if until > time.monotonic():
            return user
        try:
            answer = await self._client.users_lookupByEmail(email=email)
        except FAILURES as error:
            if is_refusal(error):
                return None
            raise not_taken(error) from None
        found: Any = answer.get("user")
        if not isinstance(found, dict):
            return None
        self._found[email] = (str(found["id"]), time.monotonic() + _FOUND_S)
        return str(found["id"])
