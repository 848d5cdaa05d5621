"""Commands about accounts: ``user …`` and ``token``."""

from __future__ import annotations

import sys

import click

from portal.processes.cli.base import main, open_services

_MAX_TOKEN_S = 10 * 365 * 86400
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_ISSUER = click.option("--issuer", help="The token issuer; needed where the settings name two.")


def _read_password(*, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))


@main.group()
def user() -> None:
    """Manage accounts."""


@user.command("create")
@click.argument("name")
@click.option("--admin", is_flag=True, help="Make them an administrator.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.pass_context
def create_user(ctx: click.Context, name: str, admin: bool, password_stdin: bool) -> None:
    """Create an account."""
    from portal.services.people import accounts

    password = _read_password(from_stdin=password_stdin)
    user = accounts.create_user(open_services(ctx), name=name, password=password, is_admin=admin)
    click.echo(f"created {user.name}")


@user.command("second-factor")
@click.argument("name")
@click.option(
    "--remove", is_flag=True, help="Remove all of them; the password alone then signs in."
)
@click.pass_context
def show_second_factors(ctx: click.Context, name: str, remove: bool) -> None:
    """Show or remove the two-step verification of an account."""
    from portal.services.people import accounts, second_factors

    services = open_services(ctx)
    user = accounts.find_user(services, name)
    found = second_factors.load(services, user.id)
    if remove:
        if not found.is_on:
            raise click.ClickException(f"{user.name} has no second factor")
        second_factors.remove_all(services, None, user.id)
        click.echo(f"removed the second factors of {user.name}")
        return
    click.echo(f"authenticator app: {'yes' if found.totp else 'no'}")
    click.echo(f"passkeys: {', '.join(passkey.name for passkey in found.passkeys) or 'none'}")
    click.echo(f"recovery codes left: {found.recovery_codes_left}")


@user.command("password")
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.pass_context
def set_user_password(ctx: click.Context, name: str, password_stdin: bool) -> None:
    """Set a user's password. All their sessions and tokens end."""
    from portal.services.people import accounts, administration

    services = open_services(ctx)
    accounts.find_user(services, name)  # Fails before the password is asked for.
    password = _read_password(from_stdin=password_stdin)
    administration.set_password(services, name, password)
    click.echo(f"set the password of {name}; all their sessions and tokens have ended")


@user.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(["admin", "user"]))
@click.pass_context
def set_user_role(ctx: click.Context, name: str, role: str) -> None:
    """Make a user an administrator, or an ordinary user."""
    from portal.services.people import administration

    administration.set_role_by_name(open_services(ctx), name, is_admin=role == "admin")
    click.echo(f"{name} is now {'an administrator' if role == 'admin' else 'an ordinary user'}")


@user.command("delete")
@click.argument("name")
@click.option(
    "--documents",
    type=click.Choice(["transfer", "keep-shared", "trash", "purge"]),
    required=True,
    help="transfer: all go to the user of --to. keep-shared: shared ones go to an administrator, "
    "private ones are erased. trash: all go into the trash. purge: all are erased.",
)
@click.option("--to", "new_owner", default="", help="Who gets the documents that are transferred.")
@click.confirmation_option("--yes", prompt="Delete the account? This cannot be undone.")
@click.pass_context
def delete_user(ctx: click.Context, name: str, documents: str, new_owner: str) -> None:
    """Delete an account with its conversations and tokens."""
    from portal.domain.people import DocumentFate
    from portal.services.operations import account_deletion

    fate = DocumentFate(documents.replace("-", "_"))
    if bool(new_owner) != (fate is DocumentFate.TRANSFER):
        raise click.UsageError("--to goes with --documents transfer, and is needed there")
    services = open_services(ctx)
    account_deletion.delete_account_by_name(
        services, name, documents=fate, new_owner_name=new_owner
    )
    click.echo(f"deleted {name}")


@user.command("link")
@click.argument("name")
@click.argument("subject")
@_ISSUER
@click.pass_context
def link_user(ctx: click.Context, name: str, subject: str, issuer: str | None) -> None:
    """Link an account to SUBJECT, the `sub` in the tokens and sign-ins of an issuer."""
    from portal.services.people.federation import outside_accounts

    outside_accounts.link(open_services(ctx), name=name, subject=subject, issuer=issuer)
    click.echo(f"linked {subject} to {name}")


@user.command("unlink")
@click.argument("subject")
@_ISSUER
@click.pass_context
def unlink_user(ctx: click.Context, subject: str, issuer: str | None) -> None:
    """Remove the link to SUBJECT, from the next request on."""
    from portal.services.people.federation import outside_accounts

    was_linked = outside_accounts.unlink(open_services(ctx), subject=subject, issuer=issuer)
    click.echo(f"unlinked {subject}" if was_linked else f"{subject} was not linked")


@main.command()
@click.argument("name")
@click.option("--expires", default="1h", show_default=True, help="Such as 30m, 12h or 7d.")
@click.pass_context
def token(ctx: click.Context, name: str, expires: str) -> None:
    """Print an access token (JWT) for an account."""
    from portal.services.people import accounts, sessions

    ttl_s = _duration_s(expires)
    services = open_services(ctx)
    user = accounts.find_user(services, name)
    click.echo(sessions.token_for(services, user, ttl_s=ttl_s))


def _duration_s(words: str) -> int:
    number, unit = words[:-1], words[-1:]
    if unit not in _UNITS_S or not number.isdecimal() or not int(number):
        raise click.BadParameter("a number and s, m, h or d, such as 1h", param_hint="--expires")
    seconds = int(number) * _UNITS_S[unit]
    if not 0 < seconds <= _MAX_TOKEN_S:
        raise click.BadParameter("between 1s and ten years", param_hint="--expires")
    return seconds
