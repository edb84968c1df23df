//! Each row of the rule table with its smallest streams: one frame after another, and as fast as the
//! data path takes them. Time is not looked at here.

use ferronic_block_tests::{Failure, Rng};
use ferronic_oracle::card;
use ferronic_oracle::frames::verdict;
use ferronic_oracle::lro::{Config, Profile, Star};
use ferronic_oracle::vectors::{Vector, all};

use crate::bench::{Bench, Rates, Settings};

/// How many pairs must receive for a frame to go to its queue.
fn pairs(frame: &[u8], queue: u16) -> Option<u16> {
    let hash = verdict(frame).hash();
    (1..=64).find(|pairs| card::pair(hash, *pairs) == queue)
}

/// Why the block cannot be made to show a vector.
pub fn impossible(vector: &Vector) -> Option<&'static str> {
    let config = &vector.config;
    let arrivals = &vector.arrivals;
    let why = [
        (matches!(config.star, Star::Queue), "it closes by addresses"),
        (config.max_buffers != 64, "a unit has at most 64 buffers"),
        (config.contexts != 16, "it has 16 contexts"),
        (config.tag.is_some(), "it has a tag of its own"),
        (vector.rule == 41, "time is tested elsewhere"),
        (
            arrivals.iter().any(|a| pairs(&a.frame, a.queue).is_none()),
            "no number of pairs gives a frame to its queue",
        ),
    ];
    why.iter().find(|(so, _)| *so).map(|(_, why)| *why)
}

/// Runs a vector; `apart` lets nothing be under way when the next frame comes.
pub fn run(vector: &Vector, width: usize, apart: bool) -> Result<(), Failure> {
    let mut rng = Rng::new(1);
    let config = &vector.config;
    let mut bench = match config.profile {
        Profile::Relaxed => Bench::relaxed(width, 1)?,
        _ => Bench::new(width, 1)?,
    };
    bench.block.set("guest_csum_i", config.csum);
    bench.block.set("guest_tso4_i", config.csum && config.tso4);
    bench.block.set("guest_tso6_i", config.csum && config.tso6);
    bench.set(Settings {
        strict: config.profile == Profile::Strict,
        relaxed: config.profile == Profile::Relaxed,
        max_bytes: config.max_bytes as u64,
        low_water: config.low_water as u64,
        ..Settings::LONG
    });
    bench.rates = Rates::FULL;
    let first = config.first_descriptor as u64;
    let buffer = config.buffer as u64;
    let posting = &mut bench.posting;
    (posting.buffers, posting.left, posting.queues) = (300, vector.posted as u64, 4);
    if first < buffer {
        (posting.segments, posting.first, posting.sizes) =
            ((2, 2), Some(first), vec![buffer - first]);
    } else {
        posting.sizes = vec![buffer];
    }
    let mut before = None;
    for arrival in &vector.arrivals {
        let pairs = pairs(&arrival.frame, arrival.queue).unwrap_or(1);
        if apart || before.is_some_and(|before| before != pairs) {
            bench.cycles(1, &mut rng)?;
            let mut left = 5000;
            while !bench.is_idle() && left > 0 {
                bench.cycle(&mut rng)?;
                left -= 1;
            }
            bench.cycles(20, &mut rng)?;
        }
        before = Some(pairs);
        bench.pairs(pairs.into());
        bench.send(&arrival.frame);
    }
    let model = Config {
        gap: u64::MAX / 4,
        hold: u64::MAX / 4,
        tag: Some(card::tag),
        star: Star::Hash(card::addresses),
        ..config.clone()
    };
    if vector.posted < 10 {
        // A frame waits in the end.
        bench.cycles(20_000, &mut rng)?;
    } else {
        bench.settle(&mut rng)?;
    }
    bench.flush(&mut rng)?;
    bench.cycles(200, &mut rng)?;
    bench.as_model(model, &vector.arrivals, vector.posted)
}

fn rule(number: u8) {
    let vectors: Vec<Vector> = all().into_iter().filter(|v| v.rule == number).collect();
    let (mut count, mut differences) = (0, Vec::new());
    for vector in &vectors {
        if let Some(why) = impossible(vector) {
            println!("rule {number}, {}: not here, {why}", vector.what);
            continue;
        }
        for width in [64, 512] {
            for apart in [true, false] {
                count += 1;
                if let Err(failure) = run(vector, width, apart) {
                    let what = vector.what;
                    differences.push(format!(
                        "rule {number}, {what}, {width} bits, apart {apart}: {failure}"
                    ));
                }
            }
        }
    }
    let failed = differences.len();
    differences.truncate(4);
    assert!(count > 0, "no vector of rule {number} is for the block");
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
