"""Functions shared by the clients of OpenAI's protocol."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from portal.domain.openai_protocol import authorization, retry_after_s


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        ("", 0),
        ("soon", 0),
        ("nan", 0),
        ("1 Jan 9999999999 0:0", 0),
    ],
)
def test_retry_after_is_read_in_seconds(header, seconds):
    assert retry_after_s(header) == seconds


def test_retry_after_is_read_as_a_date():
    then = datetime.now(UTC) + timedelta(seconds=20)
    assert retry_after_s(format_datetime(then, usegmt=True)) == pytest.approx(20, abs=2)
    assert retry_after_s(format_datetime(then - timedelta(hours=1), usegmt=True)) == 0


def test_key_that_no_header_can_carry_is_not_sent():
    assert authorization("sk-1") == {"Authorization": "Bearer sk-1"}
    assert authorization("") == authorization("密钥") == authorization("a\nb") == {}
