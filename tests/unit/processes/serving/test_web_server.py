from __future__ import annotations

import socket

from portal.processes.serving.web_server import listen


def test_responses_do_not_wait_for_an_acknowledgement() -> None:
    with (
        listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
