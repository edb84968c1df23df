//! Each row of the rule table of LRO with its smallest streams.

use ferronic_oracle::vectors::{all, check};

fn rule(number: u8) {
    if let Err(difference) = check(number) {
        panic!("{difference}");
    }
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
fn rule_40_table_full() {
    rule(40);
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
fn every_row_has_vectors_and_no_vector_is_of_another() {
    let mut rows: Vec<u8> = all().iter().map(|vector| vector.rule).collect();
    rows.sort_unstable();
    rows.dedup();
    assert_eq!(rows, (1..=44).collect::<Vec<u8>>());
}
