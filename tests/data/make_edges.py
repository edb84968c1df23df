#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes edges.pcap: frames at the sizes and of the kinds where a card is likely to go wrong.

The same bytes every time. Run in this directory: `python3 make_edges.py`.
"""

import struct

MAC_A = bytes.fromhex("02fe01000001")
MAC_B = bytes.fromhex("02fe01000002")
IP4_A, IP4_B = bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])
IP6_A = bytes.fromhex("20010db8000000000000000000000001")
IP6_B = bytes.fromhex("20010db8000000000000000000000002")


def payload(length, seed):
    """Bytes without a pattern that a shifted or doubled word could repeat."""
    state, out = (seed * 2654435761 + 1) & 0xFFFFFFFF, bytearray()
    while len(out) < length:
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return bytes(out)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(ethertype, body):
    return MAC_B + MAC_A + struct.pack("!H", ethertype) + body


def ipv4(protocol, body, identification=0, fragment=0, options=b""):
    words = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH", 0x40 | words, 0, words * 4 + len(body), identification,
                       fragment, 64, protocol, 0) + IP4_A + IP4_B + options
    return ethernet(0x0800, head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body)


def ipv6(next_header, body, extension=b""):
    head = struct.pack("!IHBB", 0x60000000, len(extension) + len(body), next_header, 64)
    return ethernet(0x86DD, head + IP6_A + IP6_B + extension + body)


def udp(pseudo, source, target, data):
    head = struct.pack("!HHHH", source, target, 8 + len(data), 0)
    total = checksum(pseudo + struct.pack("!HH", 17, 8 + len(data)) + head + data) or 0xFFFF
    return head[:6] + struct.pack("!H", total) + data


def udp4(length, flow, seed):
    """An IPv4 UDP frame of `length` bytes in all (at least 42)."""
    return ipv4(17, udp(IP4_A + IP4_B, 4000 + flow, 5000, payload(length - 42, seed)), seed)


def udp6(length, flow, seed):
    """An IPv6 UDP frame of `length` bytes in all (at least 62)."""
    return ipv6(17, udp(IP6_A + IP6_B, 4000 + flow, 5000, payload(length - 62, seed)))


def icmp4(length, sequence):
    body = struct.pack("!BBHHH", 8, 0, 0, 1, sequence) + payload(length - 42, sequence)
    return ipv4(1, body[:2] + struct.pack("!H", checksum(body)) + body[4:])


def frames():
    arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + MAC_A + IP4_A + bytes(6) + IP4_B
    yield ethernet(0x0806, arp)
    yield ethernet(0x0806, arp + bytes(18))
    # Less than the Ethernet minimum: a card between two software switches sees these.
    for length in (14, 15, 16, 17, 23, 24, 25, 33):
        yield ethernet(0x88B5, payload(length - 14, length))
    # Around the widths of the data path (8 to 64 bytes), with and without the virtio header of 12.
    for length in (42, 43, 51, 52, 53, 59, 60, 61, 63, 64, 65, 71, 72, 115, 116, 117, 127, 128, 129):
        yield udp4(length, length % 5, length)
    # Around payload and read request sizes of PCIe, again with and without 12.
    for length in (243, 244, 245, 256, 257, 499, 500, 501, 512, 513, 1012, 1024, 1025):
        yield udp4(length, length % 5, length)
    for length in (62, 64, 66, 128, 244, 1500, 1514):
        yield udp6(length, length % 3, length)
    for sequence, length in enumerate((42, 98, 1513, 1514)):
        yield icmp4(length, sequence)
    # What a parser of flows must not misread: options, fragments, a tag, an extension header.
    yield ipv4(17, udp(IP4_A + IP4_B, 4001, 5000, payload(40, 7)), options=bytes([1, 1, 1, 0]))
    yield ipv4(17, udp(IP4_A + IP4_B, 4001, 5000, payload(56, 8)), 9, 0x2000)
    yield ipv4(17, payload(64, 9), 9, 8)
    tagged = udp4(100, 1, 10)
    yield tagged[:12] + struct.pack("!HH", 0x8100, 42) + tagged[12:]
    yield ipv6(0, udp(IP6_A + IP6_B, 4001, 5000, payload(30, 11)), bytes([17, 0, 1, 4, 0, 0, 0, 0]))
    # Jumbo frames up to the largest that the card takes.
    for length in (1518, 2034, 2048, 4084, 4096, 4097, 9014, 9216):
        yield udp4(length, length % 5, length)


def main():
    with open("edges.pcap", "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames()):
            out.write(struct.pack("<IIII", 1_700_000_000, number * 20, len(frame), len(frame)))
            out.write(frame)


if __name__ == "__main__":
    main()
