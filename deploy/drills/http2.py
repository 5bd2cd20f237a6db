"""Just enough HTTP/2 to be a bad client: frames and headers by hand (RFC 9113, RFC 7541)."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0, 1, 3, 4, 6
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4  # the setting


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(values=()):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in values))


def header_block(path, authority="localhost"):
    """Literal fields without indexing, names spelt out, no Huffman coding."""
    block = b""
    for name, value in ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", authority),
                        ("te", "trailers"), ("content-type", "application/grpc")):
        block += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return block


def message(payload):
    """With gRPC's prefix."""
    return b"\0" + struct.pack(">I", len(payload)) + payload


def call(path, stream, payload):
    return (frame(HEADERS, END_HEADERS, stream, header_block(path)) +
            frame(DATA, END_STREAM, stream, message(payload)))


def connect(port, values=()):
    """A socket that has said hello. Its timeout is short: drills never wait for a server that hangs."""
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    plain.sendall(PREFACE + settings(values))
    return plain
