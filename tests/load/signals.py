#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends kvtide-serve SIGTERM all the time from its first line to its end, while
a completion runs that would take long. It must cut that off, print its last line
and end with status 0.
"""

import signal
import socket
import subprocess
import sys

BODY = b'{"prompt": "a", "max_tokens": 90000, "stream": true}'


def main():
    server = subprocess.Popen(
        [sys.argv[1], "--listen", "127.0.0.1:0", "--max-tokens", "100000",
         "--device-blocks", "8000", "--drain", "600"],
        stdout=subprocess.PIPE, text=True)
    try:
        return watch(server)
    finally:
        server.kill()


def watch(server):
    port = int(server.stdout.readline().rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: t\r\n"
                       b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY))
        client.recv(1)
    # The client is gone, or the server would wait for it to read.
    while server.poll() is None:
        server.send_signal(signal.SIGTERM)
    last = server.stdout.read()
    print(last, end="")
    print("status", server.returncode)
    return 0 if server.returncode == 0 and last.startswith("stopped: ") else 1


if __name__ == "__main__":
    sys.exit(main())
