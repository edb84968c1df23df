//! Each row of the rule table with its smallest streams, through the whole card at both widths.

use ferronic_cosim_tests::lro::vectors::{impossible, run};
use ferronic_oracle::segment::{Segment, flag};
use ferronic_oracle::vectors::{Vector, all};
use ferronic_sim::model::WIDTHS;

use crate::bench::Bench;

fn rule(number: u8) {
    let vectors: Vec<Vector> = all().into_iter().filter(|v| v.rule == number).collect();
    let mut differences = Vec::new();
    let mut count = 0;
    for vector in &vectors {
        if let Some(why) = impossible(vector) {
            println!("rule {number}, {}: not here, {why}", vector.what);
            continue;
        }
        for data_w in WIDTHS {
            count += 1;
            differences.extend(run(vector, *data_w).err());
        }
    }
    assert!(count > 0, "no vector of rule {number} is for the card");
    let failed = differences.len();
    differences.truncate(4);
    assert!(
        failed == 0,
        "{failed} of {count}:\n{}",
        differences.join("\n")
    );
}

#[test]
fn rule_01_what_is_not_tcp_passes() {
    rule(1);
}

#[test]
fn rule_02_ipv4_options() {
    rule(2);
}

#[test]
fn rule_03_fragments() {
    rule(3);
}

#[test]
fn rule_04_dont_fragment() {
    rule(4);
}

#[test]
fn rule_05_ip_id_sequences() {
    rule(5);
}

#[test]
fn rule_06_ttl() {
    rule(6);
}

#[test]
fn rule_07_traffic_class() {
    rule(7);
}

#[test]
fn rule_08_flow_label() {
    rule(8);
}

#[test]
fn rule_09_extension_headers() {
    rule(9);
}

#[test]
fn rule_10_bytes_behind_the_packet() {
    rule(10);
}

#[test]
fn rule_11_lengths_that_contradict() {
    rule(11);
}

#[test]
fn rule_12_header_sum_wrong() {
    rule(12);
}

#[test]
fn rule_13_tcp_sum_wrong() {
    rule(13);
}

#[test]
fn rule_14_sums_not_verified() {
    rule(14);
}

#[test]
fn rule_15_sum_of_ones() {
    rule(15);
}

#[test]
fn rule_16_mac_addresses() {
    rule(16);
}

#[test]
fn rule_17_vlan_tags() {
    rule(17);
    // MAC addresses made so that a frame with one tag looks like one with two, four bytes later.
    let mut two = Segment::v4(0, 100);
    two.tags = vec![[0x88, 0xa8, 0, 7], [0x81, 0, 0, 10]];
    let mut one = two.next(100);
    one.tags.remove(0);
    one.macs[..8].copy_from_slice(&two.macs[4..]);
    one.macs[8..].copy_from_slice(&two.tags[0]);
    let back = [one.clone(), one.next(100)];
    let again = Segment {
        seq: back[1].seq + 100,
        id: back[1].id + 1,
        ..two.clone()
    };
    for data_w in WIDTHS {
        let bench = Bench::new(format!("tags made alike, {data_w} bits"), *data_w, 0);
        let segments = [&two, &one, &back[1], &again];
        bench.compare(segments.map(Segment::bytes));
    }
}

#[test]
fn rule_18_psh() {
    rule(18);
}

#[test]
fn rule_19_fin() {
    rule(19);
}

#[test]
fn rule_20_syn_rst_urg() {
    rule(20);
}

#[test]
fn rule_21_ack_clear() {
    rule(21);
}

#[test]
fn rule_22_ece() {
    rule(22);
}

#[test]
fn rule_23_cwr() {
    rule(23);
}

#[test]
fn rule_24_reserved_flags_and_data_offset() {
    rule(24);
}

#[test]
fn rule_25_window() {
    rule(25);
}

#[test]
fn rule_26_urgent_pointer() {
    rule(26);
}

#[test]
fn rule_27_ack_advances() {
    rule(27);
}

#[test]
fn rule_28_ack_regresses() {
    rule(28);
}

#[test]
fn rule_29_no_payload() {
    rule(29);
}

#[test]
fn rule_30_next_sequence_number() {
    rule(30);
}

#[test]
fn rule_31_another_sequence_number() {
    rule(31);
}

#[test]
fn rule_32_equal_time_stamps() {
    rule(32);
}

#[test]
fn rule_33_time_stamp_advances() {
    rule(33);
}

#[test]
fn rule_34_time_stamp_goes_back_or_is_missing() {
    rule(34);
}

#[test]
fn rule_35_other_options() {
    rule(35);
}

#[test]
fn rule_36_smaller_payload() {
    rule(36);
}

#[test]
fn rule_37_larger_payload() {
    rule(37);
}

#[test]
fn rule_38_length_limit() {
    rule(38);
}

#[test]
fn rule_39_buffers() {
    rule(39);
}

/// A segment of one of many flows.
fn flow(number: u16, seq: u32) -> Segment {
    Segment {
        ports: [1000 + number, 1],
        ..Segment::v4(seq, 100)
    }
}

#[test]
fn rule_40_table_full() {
    let all = |numbers: std::ops::Range<u16>| numbers.map(|number| flow(number, 0));
    // Seventeen flows; the oldest is the one opened first, though it had a segment last.
    let mut oldest: Vec<_> = all(0..16).collect();
    oldest.extend([flow(0, 100), flow(16, 0), flow(1, 100), flow(17, 0)]);
    // One that makes room for itself evicts no other, what is not held evicts none.
    let mut own: Vec<_> = all(0..16).collect();
    own.extend([flow(9, 7), flow(20, 0).flags(flag::ACK | flag::PSH)]);
    own.extend([flow(21, 0).flags(flag::SYN), flow(22, 0)]);
    // Each evicts one.
    let many: Vec<_> = all(0..100).chain(all(50..100)).collect();
    // Two flows of one tag, by turns, then with a full table.
    let swapped = |seq| Segment {
        ports: [1, 1000],
        ..flow(0, seq)
    };
    let mut tags = vec![flow(0, 0), swapped(0), flow(0, 100), swapped(100)];
    tags.extend(all(1..16));
    tags.extend([flow(0, 200), swapped(200), flow(3, 100), flow(30, 0)]);
    for (name, segments) in [
        ("oldest", oldest),
        ("own", own),
        ("many", many),
        ("tags", tags),
    ] {
        for data_w in WIDTHS {
            let bench = Bench::new(format!("{name}, {data_w} bits"), *data_w, 0);
            let units = bench.compare(segments.iter().map(Segment::bytes));
            assert!(units.len() > 15);
        }
    }
}

#[test]
fn rule_41_timers() {
    rule(41);
}

#[test]
fn rule_42_order() {
    rule(42);
}

#[test]
fn rule_43_forwarding_and_off() {
    rule(43);
}

#[test]
fn rule_44_ipsec() {
    rule(44);
}

#[test]
fn vectors_that_are_not_for_the_whole_card_are_these() {
    let not: Vec<_> = all()
        .iter()
        .filter(|vector| impossible(vector).is_some())
        .map(|vector| (vector.rule, vector.what))
        .collect();
    let known = [
        // Settings and sizes that it has not.
        (2, "by queue, it does"),
        (38, "a setting of 240"),
        (38, "a setting below one segment"),
        (39, "4 buffers are filled"),
        (39, "one byte more"),
        // Other contexts and tags: row 40 has such streams for the card's own, too.
        (40, "three flows in two contexts"),
        (40, "nine flows in eight contexts"),
        (40, "a flow that makes room for itself evicts no other"),
        (40, "what is not held evicts none"),
        (40, "two flows of one tag"),
        // Flows that change their queue, or two of one hash in two queues: a test of the block.
        (12, "another queue keeps what it holds"),
        (39, "another queue's stay"),
        (42, "to another queue"),
        (42, "to another queue and back"),
    ];
    let sorted = |list: &[(u8, &'static str)]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    assert_eq!(sorted(&not), sorted(&known));
}
