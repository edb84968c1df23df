//! Segments and checksums against packets that another implementation built, field by field.

use ferronic_oracle::{
    Cause, Header, NEEDS_CSUM, Offloads, Outcome, gso, transmit, transmit_buffer,
};

fn hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).expect("a hexadecimal digit") as u8;
    let digits: Vec<u8> = text
        .bytes()
        .filter(|c| !c.is_ascii_whitespace())
        .map(digit)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn sent(header: &Header, frame: &[u8]) -> Vec<Vec<u8>> {
    match transmit(header, frame, Offloads::ALL) {
        Outcome::Sent(frames) => frames,
        Outcome::Dropped(causes) => panic!("dropped: {causes:?}"),
    }
}

/// The headers that come out for `headers` and the bytes 0, 1, 2 and so on as payload, each with the
/// bytes of payload that belong to it.
fn check(gso_type: u8, size: u16, headers: &str, payload: u8, wanted: &[&str]) {
    let header = Header {
        gso_type,
        gso_size: size,
        ..Header::default()
    };
    let payload: Vec<u8> = (0..payload).collect();
    let frame = [hex(headers), payload.clone()].concat();
    let wanted: Vec<Vec<u8>> = payload
        .chunks(size.into())
        .zip(wanted)
        .map(|(piece, headers)| [&hex(headers), piece].concat())
        .collect();
    assert_eq!(sent(&header, &frame), wanted);
}

/// A VLAN tag, IPv4 with options, TCP with time stamps; identification and sequence wrap; FIN, PSH,
/// CWR and ECE are set.
#[test]
fn tcp_over_ipv4() {
    let ethernet = "525400123456 020000000001 8100 0005 0800";
    let ports = "1389 01bb";
    check(
        gso::TCPV4 | gso::ECN,
        10,
        // Total length and both sums are not those of any segment.
        &format!(
            "{ethernet} 4600dead fffe4000 4006beef c0000201 c6336407 01010101 {ports} fffffff8
             01020304 80d9 1000 5555 0000 0101080a 11223344 55667788"
        ),
        25,
        &[
            &format!(
                "{ethernet} 46000042 fffe4000 40064b79 c0000201 c6336407 01010101 {ports} fffffff8
                 01020304 80d0 1000 3b06 0000 0101080a 11223344 55667788"
            ),
            &format!(
                "{ethernet} 46000042 ffff4000 40064b78 c0000201 c6336407 01010101 {ports} 00000002
                 01020304 8050 1000 094b 0000 0101080a 11223344 55667788"
            ),
            &format!(
                "{ethernet} 4600003d 00004000 40064b7d c0000201 c6336407 01010101 {ports} 0000000c
                 01020304 8059 1000 0d5c 0000 0101080a 11223344 55667788"
            ),
        ],
    );
}

/// PSH on the last one only; the payloads are of odd length.
#[test]
fn tcp_over_ipv6() {
    let ethernet = "525400123456 020000000001 86dd";
    let addresses = "20010db8000000000000000000000001 20010db8000000000000000000000002";
    check(
        gso::TCPV6,
        9,
        &format!(
            "{ethernet} 60000000 ffff0640 {addresses} 00501f90 000003e8 00000000 5018 2000 1234
             0000"
        ),
        16,
        &[
            &format!(
                "{ethernet} 60000000 001d0640 {addresses} 00501f90 000003e8 00000000 5010 2000
                 fc7e 0000"
            ),
            &format!(
                "{ethernet} 60000000 001b0640 {addresses} 00501f90 000003f1 00000000 5018 2000
                 e05b 0000"
            ),
        ],
    );
}

/// Behind destination options, with traffic class and flow label.
#[test]
fn udp_over_ipv6() {
    let ethernet = "525400123456 020000000001 86dd";
    let addresses = "20010db8000000000000000000000001 20010db8000000000000000000000002";
    let options = "11 00 01 04 00000000";
    check(
        gso::UDP_L4,
        13,
        &format!("{ethernet} 6a512345 0000 3c03 {addresses} {options} 04d210e1 0000 0000"),
        21,
        &[
            &format!("{ethernet} 6a512345 001d 3c03 {addresses} {options} 04d210e1 0015 6478"),
            &format!("{ethernet} 6a512345 0018 3c03 {addresses} {options} 04d210e1 0010 4e62"),
        ],
    );
}

const UDP_OF_SUM_0: &str = "525400123456 020000000001 0800 45000020 00070000 401166c4 0a000001
    0a000002 03e807d0 000c ffff 7eb9 6162";

#[test]
fn udp_sum_of_0_is_sent_as_all_ones() {
    let wanted = hex(UDP_OF_SUM_0);
    let mut frame = wanted.clone();
    // Cut into one segment, or with the sum of the pseudo header in place.
    let mut header = Header {
        gso_type: gso::UDP_L4,
        gso_size: 1000,
        ..Header::default()
    };
    assert_eq!(sent(&header, &frame), std::slice::from_ref(&wanted));
    header = Header {
        flags: NEEDS_CSUM,
        csum_start: 34,
        csum_offset: 6,
        ..Header::default()
    };
    // 0a00 + 0001 + 0a00 + 0002 + 0011 + 000c
    frame[40..42].copy_from_slice(&[0x14, 0x20]);
    assert_eq!(sent(&header, &frame), [wanted]);
}

#[test]
fn checksum_goes_anywhere_in_the_frame() {
    // Words from an odd place on: 0102 + 0304 + 05--, and the last byte.
    let mut frame = vec![0; 14];
    frame.extend([9, 1, 2, 3, 4, 5]);
    let header = Header {
        flags: NEEDS_CSUM,
        csum_start: 15,
        csum_offset: 0,
        ..Header::default()
    };
    let mut wanted = frame.clone();
    wanted[15..17].copy_from_slice(&(!0x0906_u16).to_be_bytes());
    assert_eq!(sent(&header, &frame), [wanted.clone()]);
    // In the middle of a word.
    let header = Header {
        csum_offset: 1,
        ..header
    };
    wanted[15..18].copy_from_slice(&[1, 0xf6, 0xf9]);
    assert_eq!(sent(&header, &frame), [wanted.clone()]);
    // The last two bytes, and one more.
    let header = Header {
        csum_offset: 3,
        ..header
    };
    wanted[15..20].copy_from_slice(&[1, 2, 3, 0xf6, 0xf9]);
    assert_eq!(sent(&header, &frame), [wanted]);
    for (csum_start, csum_offset) in [(15, 4), (19, 0), (20, 0), (0, 19), (0xffff, 1), (2, 0xffff)]
    {
        let header = Header {
            csum_start,
            csum_offset,
            ..header
        };
        let outcome = transmit(&header, &frame, Offloads::ALL);
        assert_eq!(outcome, Outcome::Dropped(vec![Cause::Offload]));
    }
}

#[test]
fn sum_of_nothing_but_zeros_is_all_ones_and_of_all_ones_0_unless_udp() {
    for (fill, offset, want) in [(0, 0, 0xff), (0, 6, 0xff), (0xff, 0, 0), (0xff, 6, 0xff)] {
        let header = Header {
            flags: NEEDS_CSUM,
            csum_start: 20,
            csum_offset: offset,
            ..Header::default()
        };
        let out = sent(&header, &[fill; 60]);
        let place = 20 + usize::from(offset);
        assert_eq!(
            out[0][place..place + 2],
            [want, want],
            "{fill:#x} at {offset}"
        );
    }
}

#[test]
fn limits_of_sizes() {
    let tcp4 = |payload: usize| {
        let mut frame = hex(
            "525400123456 020000000001 0800 4500ffff 00004000 40060000 c0000201
            c6336407 00010002 00000000 00000000 5010 0000 0000 0000",
        );
        frame.resize(54 + payload, 7);
        frame
    };
    let request = |gso_size| Header {
        gso_type: gso::TCPV4,
        gso_size,
        ..Header::default()
    };
    let long = Outcome::Dropped(vec![Cause::Long]);
    let count = |header: &Header, frame: &[u8]| sent(header, frame).len();
    assert_eq!(count(&request(9162), &tcp4(9163)), 2);
    assert_eq!(transmit(&request(9163), &tcp4(9163), Offloads::ALL), long);
    assert_eq!(count(&request(0xffff), &tcp4(9162)), 1);
    assert_eq!(count(&request(1), &tcp4(0)), 1);
    assert_eq!(count(&request(1), &tcp4(1000)), 1000);
    // The largest buffer is one of 65,535 bytes behind two tags.
    let most = 22 + 65_535;
    assert_eq!(count(&request(1460), &tcp4(most - 54)), 45);
    assert_eq!(
        transmit(&request(1460), &tcp4(most - 53), Offloads::ALL),
        long
    );

    let plain = |frame: usize, offloads: Offloads| transmit_buffer(&vec![0; 12 + frame], offloads);
    for offloads in [Offloads::default(), Offloads::ALL] {
        assert_eq!(plain(14, offloads), Outcome::Sent(vec![vec![0; 14]]));
        assert_eq!(plain(9216, offloads), Outcome::Sent(vec![vec![0; 9216]]));
        assert_eq!(plain(9217, offloads), long);
        assert_eq!(plain(13, offloads), Outcome::Dropped(vec![Cause::Short]));
        assert_eq!(
            transmit_buffer(&[0; 11], offloads),
            Outcome::Dropped(vec![Cause::Short])
        );
    }
}

#[test]
fn nothing_that_was_not_negotiated_is_done() {
    let dropped = Outcome::Dropped(vec![Cause::Offload]);
    let frame = hex(UDP_OF_SUM_0);
    let none = Offloads::default();
    let checksum = Header {
        flags: NEEDS_CSUM,
        csum_start: 34,
        csum_offset: 6,
        ..Header::default()
    };
    assert_eq!(transmit(&checksum, &frame, none), dropped);
    let uso = Header {
        gso_type: gso::UDP_L4,
        gso_size: 4,
        ..Header::default()
    };
    let without = Offloads {
        uso: false,
        ..Offloads::ALL
    };
    assert_eq!(transmit(&uso, &frame, without), dropped);
    // What the packet is not, and what is none.
    for gso_type in [1, 4, 2, 3, 6, 0x7f, 0x80, 0x85] {
        let header = Header { gso_type, ..uso };
        assert_eq!(
            transmit(&header, &frame, Offloads::ALL),
            dropped,
            "{gso_type:#x}"
        );
    }
    let header = Header { gso_size: 0, ..uso };
    assert_eq!(transmit(&header, &frame, Offloads::ALL), dropped);
    // Other flags mean nothing.
    let header = Header {
        flags: 0xfe,
        ..Header::default()
    };
    assert_eq!(transmit(&header, &frame, none), Outcome::Sent(vec![frame]));
}
