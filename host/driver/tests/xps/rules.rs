//! S3-R2 to S3-R4 and S3-R9, each rule by its smallest case.

use ferronic::xps::{Mask, Packet, Rule, Socket};

use crate::{card, from, list, part};

#[test]
fn s3_r2_one_queue_in_use_takes_everything() {
    let xps = card(4, 4);
    xps.set_cpus(3, &list("0", 4)).unwrap();
    xps.set_select(Some(|_| Some(2))).unwrap();
    xps.set_queues(1, |_| ()).unwrap();
    let mut socket = Socket::new();
    let pick = xps.view().pick(&from(0, u32::MAX), Some(&mut socket));
    assert_eq!((pick.queue, pick.by), (0, Rule::Single));
    assert_eq!(socket.queue(), None);
}

#[test]
fn s3_r2_each_rule_goes_before_the_next() {
    let xps = card(8, 4);
    let mut socket = Socket::new();
    let pick = |packet: &Packet, socket: &mut Socket| {
        let pick = xps.view().pick(packet, Some(socket));
        (pick.queue, pick.by)
    };
    let anew = Packet {
        ooo_okay: true,
        ..from(1, part(5, 8))
    };
    // From the last rule to the first.
    assert_eq!(pick(&anew, &mut socket), (5, Rule::Hash));
    let forwarded = Packet {
        rx_queue: Some(6),
        ..anew
    };
    assert_eq!(pick(&forwarded, &mut socket), (6, Rule::RxQueue));
    xps.set_cpus(2, &list("1", 4)).unwrap();
    assert_eq!(pick(&forwarded, &mut socket), (2, Rule::CpuMap));
    xps.set_rxqs(3, &list("7", 8)).unwrap();
    assert_eq!(pick(&forwarded, &mut socket), (2, Rule::CpuMap));
    socket.record_rx(Some(7));
    assert_eq!(pick(&forwarded, &mut socket), (3, Rule::RxMap));
    // A receive queue without an answer leaves it to the CPU.
    socket.record_rx(Some(0));
    assert_eq!(pick(&forwarded, &mut socket), (2, Rule::CpuMap));
    socket.record_rx(Some(7));
    let bound = Packet {
        ooo_okay: false,
        ..forwarded
    };
    assert_eq!(pick(&bound, &mut socket), (2, Rule::Socket));
    xps.set_select(Some(|packet| (packet.hash > 0).then_some(4)))
        .unwrap();
    assert_eq!(pick(&bound, &mut socket), (4, Rule::Select));
    // It may leave the choice to the others.
    assert_eq!(
        pick(&Packet { hash: 0, ..bound }, &mut socket),
        (2, Rule::Socket)
    );
    xps.set_select(None).unwrap();
    assert_eq!(pick(&anew, &mut socket), (3, Rule::RxMap));
}

#[test]
fn s3_r2_choice_is_stored_only_in_a_full_socket_with_a_route() {
    let xps = card(4, 4);
    xps.set_cpus(1, &list("0", 4)).unwrap();
    xps.set_cpus(2, &list("1", 4)).unwrap();
    let view = xps.view();
    let mut socket = Socket::new();
    view.pick(&from(0, 0), Some(&mut socket));
    assert_eq!(socket.queue(), Some(1));
    // It stays, wherever it is sent from.
    assert_eq!(view.pick(&from(1, 0), Some(&mut socket)).queue, 1);

    let mut partial = Socket::partial();
    view.pick(&from(0, 0), Some(&mut partial));
    assert_eq!(partial.queue(), None);
    assert_eq!(view.pick(&from(1, 0), Some(&mut partial)).queue, 2);

    socket.set_route(false);
    assert_eq!(socket.queue(), None);
    assert_eq!(view.pick(&from(1, 0), Some(&mut socket)).queue, 2);
    assert_eq!(socket.queue(), None);
    socket.set_route(true);
    view.pick(&from(1, 0), Some(&mut socket));
    assert_eq!(socket.queue(), Some(2));
}

#[test]
fn s3_r2_answers_are_capped_to_the_queues_in_use() {
    let xps = card(4, 4);
    xps.set_select(Some(|packet| u16::try_from(packet.hash).ok()))
        .unwrap();
    let mut socket = Socket::new();
    let view = xps.view();
    let pick = |hash, socket| {
        let pick = view.pick(&from(0, hash), socket);
        (pick.queue, pick.by)
    };
    assert_eq!(pick(3, None), (3, Rule::Select));
    assert_eq!(pick(4, Some(&mut socket)), (0, Rule::Capped));
    assert_eq!(pick(65_535, None), (0, Rule::Capped));
    // It is none of the socket's.
    assert_eq!(socket.queue(), None);

    // A class may have queues that went out of use.
    let xps = card(8, 1);
    xps.set_classes(2).unwrap();
    xps.set_class_queues(1, 4..8).unwrap();
    xps.set_queues(6, |_| ()).unwrap();
    xps.set_priority(0, 1).unwrap();
    let pick = |hash| {
        let pick = xps.view().pick(&from(0, hash), None);
        (pick.queue, pick.by)
    };
    assert_eq!(pick(part(1, 4)), (5, Rule::Hash));
    assert_eq!(pick(part(2, 4)), (0, Rule::Capped));
}

#[test]
fn s3_r3_several_queues_share_by_scaled_hash() {
    let xps = card(8, 2);
    for queue in [1, 4, 6] {
        xps.set_cpus(queue, &list("1", 2)).unwrap();
    }
    let view = xps.view();
    let queue = |hash| {
        let pick = view.pick(&from(1, hash), None);
        assert_eq!(pick.by, Rule::CpuMap);
        pick.queue
    };
    // A third of all hashes each: floor(hash * 3 / 2^32).
    assert_eq!([0, 0x5555_5555, 0x5555_5556].map(queue), [1, 1, 4]);
    assert_eq!([0xaaaa_aaaa, 0xaaaa_aaab, u32::MAX].map(queue), [4, 6, 6]);
}

#[test]
fn s3_r3_one_queue_needs_no_hash_and_none_gives_no_answer() {
    let xps = card(4, 3);
    xps.set_cpus(2, &list("1", 3)).unwrap();
    let view = xps.view();
    for hash in [0, 1 << 31, u32::MAX] {
        assert_eq!(view.pick(&from(1, hash), None).by, Rule::CpuMap);
        assert_eq!(view.pick(&from(1, hash), None).queue, 2);
        for cpu in [0, 2] {
            assert_eq!(view.pick(&from(cpu, hash), None).by, Rule::Hash);
        }
    }
}

#[test]
fn s3_r3_numbers_beyond_the_map_give_no_answer() {
    let xps = card(4, 4);
    for queue in 0..4 {
        xps.set_cpus(queue, &Mask::all(4)).unwrap();
        xps.set_rxqs(queue, &Mask::all(4)).unwrap();
    }
    let view = xps.view();
    for cpu in [4, 5, 64, 1 << 16, u32::MAX - 1, u32::MAX] {
        assert_eq!(view.pick(&from(cpu, 7), None).by, Rule::Hash, "{cpu}");
    }
    let mut socket = Socket::new();
    for rx_queue in [4, 5, 1 << 15, u16::MAX] {
        socket.record_rx(Some(rx_queue));
        let packet = Packet {
            ooo_okay: true,
            ..from(9, 7)
        };
        let pick = view.pick(&packet, Some(&mut socket));
        assert_eq!(pick.by, Rule::Hash, "{rx_queue}");
    }
}

#[test]
fn s3_r3_classes_have_lists_of_their_own() {
    let xps = card(8, 2);
    xps.set_classes(2).unwrap();
    xps.set_class_queues(0, 0..4).unwrap();
    xps.set_class_queues(1, 4..8).unwrap();
    xps.set_priority(5, 1).unwrap();
    xps.set_cpus(1, &list("0", 2)).unwrap();
    xps.set_cpus(6, &list("0", 2)).unwrap();
    let view = xps.view();
    let pick = |priority, hash| {
        let packet = Packet {
            priority,
            ..from(0, hash)
        };
        view.pick(&packet, None).queue
    };
    assert_eq!(
        [pick(0, 9), pick(5, 9), pick(21, 9), pick(6, 9)],
        [1, 6, 6, 1]
    );
    // CPU 1 is in no list: the hash chooses among the queues of the class.
    let other = |priority, hash| {
        let packet = Packet {
            priority,
            ..from(1, hash)
        };
        view.pick(&packet, None).queue
    };
    assert_eq!(
        [other(0, u32::MAX), other(5, 0), other(5, u32::MAX)],
        [3, 4, 7]
    );
}

#[test]
fn s3_r4_hash_is_scaled_over_all_queues() {
    let xps = card(5, 1);
    let view = xps.view();
    for queue in 0..5 {
        let first = part(u64::from(queue), 5) + u32::from(queue > 0);
        let last = u32::try_from(((u64::from(queue) + 1) << 32) / 5).unwrap_or(u32::MAX);
        for hash in [first, last] {
            let pick = view.pick(&from(0, hash), None);
            assert_eq!((pick.queue, pick.by), (queue, Rule::Hash), "{hash:#x}");
        }
    }
}

#[test]
fn s3_r4_receive_queue_of_a_forwarded_packet_is_folded_into_the_class() {
    let forwarded = |rx_queue, priority| Packet {
        rx_queue: Some(rx_queue),
        priority,
        ..from(0, u32::MAX)
    };
    let xps = card(10, 1);
    let folded = |rx_queue, priority| {
        let pick = xps.view().pick(&forwarded(rx_queue, priority), None);
        assert_eq!(pick.by, Rule::RxQueue);
        pick.queue
    };
    assert_eq!([0, 9, 10, 25].map(|rxq| folded(rxq, 0)), [0, 9, 0, 5]);
    xps.set_classes(2).unwrap();
    xps.set_class_queues(1, 4..7).unwrap();
    xps.set_priority(3, 1).unwrap();
    // Below the class's first queue it is folded as it is, else from there.
    let classed = [0, 2, 3, 4, 6, 7, 12].map(|rxq| folded(rxq, 3));
    assert_eq!(classed, [4, 6, 4, 4, 6, 4, 6]);
    // Class 0 has no queues: all are its.
    assert_eq!(folded(9, 0), 9);
}

/// The card's half is to send replies to the queue pair on which the flow was last sent; with each
/// receive queue given to the transmit queue of its number, the flow then stays on its pair,
/// whichever CPU sends.
#[test]
fn s3_r9_replies_of_a_pair_leave_by_the_same_pair() {
    let pairs = 16;
    let xps = card(pairs, 8);
    for queue in 0..pairs {
        let own = Mask::of([usize::from(queue)], usize::from(pairs)).unwrap();
        xps.set_rxqs(queue, &own).unwrap();
        // What the receive queue overrules.
        xps.set_cpus(queue, &Mask::all(8)).unwrap();
    }
    let mut socket = Socket::new();
    for (round, arrived) in (0..).zip([3, 3, 9, 0, 15, 3]) {
        socket.record_rx(Some(arrived));
        let reply = Packet {
            ooo_okay: true,
            ..from(round % 8, round * 0x1234_5678)
        };
        let pick = xps.view().pick(&reply, Some(&mut socket));
        assert_eq!((pick.queue, pick.by), (arrived, Rule::RxMap));
        // The next one goes to the pair that sent.
        assert_eq!(socket.queue(), Some(arrived));
    }
}
