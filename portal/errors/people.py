"""Errors of accounts, sign-in and tokens."""

from __future__ import annotations

from portal.errors.base import (
    Conflict,
    Forbidden,
    InvalidInput,
    MalformedRequest,
    NotFound,
    NotSignedIn,
    RateLimited,
    Unavailable,
)
from portal.errors.messages import N_

# A message on the line of its name keeps this list short.
# fmt: off


class InvalidLogoutToken(MalformedRequest):
    message = N_("The logout token could not be verified, or was used before.")


class ProviderSignInExpired(MalformedRequest):
    message = N_("This sign-in took too long, was used already, or began in another browser or "
                 "tab. Start again.")


class WrongCredentials(NotSignedIn):
    message = N_("Incorrect username or password. Check both and try again.")


class SignInExpired(NotSignedIn):
    message = N_("This sign-in has expired. Start again with your name and password.")


class SecondFactorRequired(WrongCredentials):
    message = N_("The password is right, but this account uses two-step verification. Send a code "
                 "from the authenticator app, or a recovery code, as “otp”.")


class WrongSecondFactor(WrongCredentials):
    message = N_("The code is wrong, has expired or was used before. Wait for the next one and try "
                 "again.")


class TotpUnreadable(WrongCredentials):
    message = N_("Codes of the authenticator app can no longer be checked, because the portal's "
                 "secret key has changed. Use a passkey or a recovery code, or ask an "
                 "administrator to remove your two-step verification.")


class PasskeyRefused(WrongCredentials):
    message = N_("The passkey could not be verified. Try again, or use another way to sign in.")


class InvalidToken(NotSignedIn):
    message = N_("The token is invalid, expired or revoked. Sign in again or create a new one.")
    challenge = 'Bearer realm="portal", error="invalid_token"'


class UnknownSubject(InvalidToken):
    message = N_("The token is valid, but its subject is not linked to an account here. Ask your "
                 "administrator to link it.")


class InsufficientScope(Forbidden):
    message = N_("This token is missing the required scope “%(scope)s”. Use a token with that "
                 "scope, or sign in.")

    def __init__(self, *, scope: str) -> None:
        super().__init__(scope=scope)
        self.challenge = f'Bearer realm="portal", error="insufficient_scope", scope="{scope}"'


class NeedsSession(Forbidden):
    message = N_("A personal token cannot change passwords, tokens or sign-ins. Sign in with your "
                 "name and password for that.")


class ReauthenticationRequired(Forbidden):
    """A password confirmation is due; `is_wrong` if the password given for it is wrong."""

    message = N_("Confirm your password to go on: this changes who may do what, and you signed in "
                 "more than 15 minutes ago.")

    def __init__(self, *, is_wrong: bool = False) -> None:
        super().__init__()
        self.is_wrong = is_wrong


class SecondFactorEnrolmentRequired(Forbidden):
    message = N_("This portal requires two-step verification for your account. Set it up on the "
                 "page /account/second-factors, or at /api/account/second-factors.")


class ProviderSignInFailed(Forbidden):
    message = N_("The sign-in service's answer could not be verified, so you are not signed in. "
                 "Start again; if it keeps failing, tell your administrator.")


class ProviderRefused(Forbidden):
    message = N_("The sign-in service did not sign you in. Start again; if it keeps failing, tell "
                 "your administrator.")


class ProviderDenied(ProviderRefused):
    message = N_("You cancelled the sign-in, or the sign-in service does not let you into this "
                 "portal. Start again, or ask your administrator for access.")


class ProviderGroupsMissing(Forbidden):
    message = N_("The sign-in service did not say which groups you are in, because there are too "
                 "many. Ask your administrator to send this portal only the groups that it needs.")


class NotInAllowedGroup(Forbidden):
    message = N_("You are not in a group that may use this portal. Ask your administrator to add "
                 "you to one.")


class NotLinked(Forbidden):
    message = N_("No account here belongs to you yet. If you have one, sign in with its password "
                 "and link it on the account page; otherwise ask an administrator.")


class AccountClosed(Forbidden):
    message = N_("Your account here is closed. Ask an administrator to open it again.")


class PasswordSignInOff(Forbidden):
    message = N_("Passwords are not used here. Sign in with the sign-in service instead.")


class InvitationsClosed(Forbidden):
    message = N_("Invitations are off, because PORTAL_REGISTRATION is “closed”: no new ones can be "
                 "created, and open ones cannot be used.")


class InvalidLink(NotFound):
    message = N_("This link is invalid or has expired. Ask an administrator for a new one.")


class NoSuchAccount(NotFound):
    message = N_(
        "There is no active account “%(name)s”. Check the name, or ask an administrator to create "
        "it."
    )


class NameTaken(Conflict):
    message = N_("The name “%(name)s” is already taken. Choose another.")


class NameLooksTaken(NameTaken):
    message = N_("The name “%(name)s” looks like one that is taken. Choose another.")


class TooManyTokens(Conflict):
    message = N_("You already have %(limit)s personal access tokens, and more are not allowed. "
                 "Revoke one that you no longer use.")


class NameNeedsLink(Conflict):
    message = N_("There already is an account “%(name)s” here. If it is yours, sign in with its "
                 "password and link it on the account page; otherwise ask an administrator.")


class LinkedElsewhere(Conflict):
    message = N_("This sign-in belongs to another account here. Unlink it there first.")


class OnlyWayIn(Conflict):
    message = N_("This is the only way into your account. Link another sign-in first, or ask an "
                 "administrator to set a password.")


class PasskeysUnavailable(InvalidInput):
    message = N_("Passkeys cannot be used at this address: %(reason)s.")


class WeakPassword(InvalidInput):
    message = N_("The password is too short. Use at least %(min)s characters.")


class BlankPassword(WeakPassword):
    message = N_("The password is blank. Use a few words, or letters, digits and symbols.")


class CommonPassword(WeakPassword):
    message = N_("The password is easy to guess: it is a common one, or close to one. Use a few "
                 "unrelated words.")


class PasswordLikeName(WeakPassword):
    message = N_("The password is too close to your name or the portal's name. Use a few unrelated "
                 "words.")


class BreachedPassword(WeakPassword):
    message = N_("The password has appeared in a data breach. Choose another one, and change it "
                 "wherever else you use it.")


class BreachedListUnavailable(Unavailable):
    message = N_("The list of breached passwords cannot be read, so the new password was not "
                 "saved. Tell your administrator.")
    retry_after_s = None


class SecondFactorLocked(RateLimited):
    message = N_("Too many wrong codes. Wait %(seconds)s seconds, or use another way to verify "
                 "that it is you.")


class IssuerUnavailable(Unavailable):
    message = N_("Tokens of the sign-in service cannot be checked, because its keys cannot be "
                 "read. Try again in a moment.")


class ProviderUnavailable(Unavailable):
    message = N_("The sign-in service cannot be reached right now. Try again in a moment.")
