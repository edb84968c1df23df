//! Faults that others shipped, by their rows of the list.

use ferronic::xps::Cpus;
use ferronic::xps::{KEY, Mask, Rule, Socket, current_cpu, flow_hash, toeplitz};

use crate::{card, from, list};

/// linux, 2023: the index of a queue that was not allocated was used to write.
#[test]
fn bug_37_queue_that_is_not_there_is_refused() {
    let xps = card(16, 4);
    let mask = Mask::all(4);
    for queue in [16, 17, 31, 64, u16::MAX] {
        let refused = format!(
            "there is no transmit queue {queue}: the card has 16, 0 to 15; name one of them"
        );
        assert_eq!(xps.set_cpus(queue, &mask).unwrap_err().to_string(), refused);
        let rxqs = xps.set_rxqs(queue, &Mask::all(16));
        assert_eq!(rxqs.unwrap_err().to_string(), refused);
        assert_eq!(xps.cpus(queue).unwrap_err().to_string(), refused);
        assert_eq!(xps.rxqs(queue).unwrap_err().to_string(), refused);
    }
    for queue in 0..16 {
        assert_eq!(xps.cpus(queue).unwrap(), Mask::new(4));
    }
    assert_eq!(xps.view().pick(&from(0, 0), None).by, Rule::Hash);
}

/// guest-configs#63: a script wrote the masks of as many queues as there could be.
#[test]
fn bug_38_queue_that_is_not_in_use_is_refused_and_named() {
    let xps = card(32, 4);
    xps.set_queues(16, |_| ()).unwrap();
    let error = xps.set_cpus(31, &list("0", 4)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "transmit queue 31 is not in use: 16 of 32 are, 0 to 15; name one of them, or raise the \
         number of queues first"
    );
    assert!(xps.set_cpus(16, &list("0", 4)).is_err() && xps.cpus(16).is_err());
    assert!(xps.cpus(31).is_err() && xps.cpus(15).is_ok());
    // It is not there in silence when the queue comes back.
    xps.set_queues(32, |_| ()).unwrap();
    assert!(xps.cpus(31).unwrap().is_empty());
    // A card with one queue has nothing to set.
    let single = card(1, 4);
    let error = single.set_cpus(0, &list("0", 4)).unwrap_err();
    assert!(error.to_string().contains("single transmit queue"));
}

/// openwrt#2553: masks of all CPUs by default cost more than they gave.
#[test]
fn bug_39_no_masks_by_default_and_with_all_masks_a_flow_stays_on_its_queue() {
    let xps = card(8, 8);
    for queue in 0..8 {
        assert!(xps.cpus(queue).unwrap().is_empty() && xps.rxqs(queue).unwrap().is_empty());
    }
    // What is chosen without masks reads no map: the pointer is looked at, nothing behind it.
    let lines = |cpu| {
        let mut lines = Vec::new();
        xps.view().pick_probed(&from(cpu, 5), None, &mut lines);
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    let without = lines(0);
    assert!(without.len() <= 3, "{without:?}");
    for queue in 0..8 {
        xps.set_cpus(queue, &Mask::all(8)).unwrap();
    }
    let mut socket = Socket::new();
    let first = xps.view().pick(&from(0, 0x9abc_def0), Some(&mut socket));
    for packet in 0..1000 {
        let pick = xps
            .view()
            .pick(&from(packet % 8, 0x9abc_def0), Some(&mut socket));
        assert_eq!(pick.queue, first.queue);
    }
    // And even anew from another CPU, for its hash is the same.
    for cpu in 0..8 {
        let pick = xps.view().pick(&from(cpu, 0x9abc_def0), None);
        assert_eq!((pick.queue, pick.by), (first.queue, Rule::CpuMap));
    }
}

/// igb_avb#36: the driver's own choice left out the maps.
#[test]
fn bug_40_nothing_goes_before_the_maps_unless_it_is_asked_for() {
    let xps = card(4, 4);
    for cpu in 0..4 {
        let mask = Mask::of([cpu], 4).unwrap();
        xps.set_cpus(3 - cpu as u16, &mask).unwrap();
    }
    let maps = || {
        for cpu in 0..4 {
            for hash in [0, 1 << 31, u32::MAX] {
                let pick = xps.view().pick(&from(cpu, hash), None);
                assert_eq!((u32::from(pick.queue), pick.by), (3 - cpu, Rule::CpuMap));
            }
        }
    };
    maps();
    // One that has no opinion leaves it to them.
    xps.set_select(Some(|_| None)).unwrap();
    maps();
}

/// compute-virtual-ethernet-dpdk#9, amzn-drivers#233: hashes that are not Toeplitz's over addresses
/// and ports in the documented order. The driver's half; what the card computes has tests of its own.
#[test]
fn bug_42_flow_hash_is_toeplitz_in_the_documented_order() {
    // Published vectors: destination, source, hash of the addresses, hash with ports.
    let published = [
        (
            "161.142.100.80:1766",
            "66.9.149.187:2794",
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "65.69.140.83:4739",
            "199.92.111.2:14230",
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "12.22.207.184:38024",
            "24.19.198.95:12898",
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "209.142.163.6:2217",
            "38.27.205.30:48228",
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "202.188.127.2:1303",
            "153.39.163.191:44251",
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "[3ffe:2501:200:3::1]:1766",
            "[3ffe:2501:200:1fff::7]:2794",
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "[ff02::1]:4739",
            "[3ffe:501:8::260:97ff:fe40:efab]:14230",
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "[fe80::200:f8ff:fe21:67cf]:38024",
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];
    for (destination, source, addresses, ports) in published {
        let (destination, source) = (destination.parse().unwrap(), source.parse().unwrap());
        assert_eq!(
            flow_hash(&KEY, source, destination),
            Some(ports),
            "{source}"
        );
        let input: Vec<u8> = [source, destination]
            .iter()
            .flat_map(|address: &std::net::SocketAddr| match address.ip() {
                std::net::IpAddr::V4(ip) => ip.octets().to_vec(),
                std::net::IpAddr::V6(ip) => ip.octets().to_vec(),
            })
            .collect();
        assert_eq!(toeplitz(&KEY, &input), addresses, "{source}");
    }
    // The key, addresses and hash of the first report.
    let key: Vec<u8> = [
        0x94e3_e97e_u32,
        0x4aba_c401,
        0x01e0_edbf,
        0xe059_e1f4,
        0xb6e2_7dff,
        0xdf55_c916,
        0xe9e6_e4db,
        0x1f9f_b82c,
        0x01e0_edbf,
        0xe059_e1f4,
    ]
    .iter()
    .flat_map(|word| word.to_be_bytes())
    .collect();
    let (source, destination) = ("79.124.62.122:49442", "192.168.7.28:55327");
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    assert_eq!(flow_hash(&key, source, destination), Some(0x8bba_fd0f));
    let other_family = "[::1]:1".parse().unwrap();
    assert_eq!(flow_hash(&key, source, other_family), None);
}

#[test]
fn cpus_of_this_machine_are_those_that_the_kernel_names() {
    let cpus = Cpus::of_this_machine().unwrap();
    let cpu = current_cpu().unwrap() as usize;
    assert!(cpu < cpus.possible() && cpus.online().contains(cpu));
    assert!(cpus.online().iter().count() >= 1);
}
