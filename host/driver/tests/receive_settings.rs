//! Steering, filters and coalescing: what is written to the card's window, and what is refused.

#[path = "support/settings.rs"]
mod settings;
mod support;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferronic::filter::{Filtered, Modes, Vlans};
use ferronic::rss::{HashTypes, Tuple, key_text, parse_key};
use ferronic::spec::window as w;
use ferronic::xps::KEY;
use ferronic::{
    CoalesceError, Coalescing, Device, DeviceConfig, Direction, Error, FilterError, FilterOptions,
    FollowError, FollowOptions, RssError, RssOptions,
};
use settings::{ALL, Settings, Steered};
use support::{Function, OFFER, SoftCard};

/// An opened card with 4 pairs that has what `features` says.
fn open(features: u32) -> (Device, Arc<Mutex<Settings>>) {
    let card = SoftCard::new(OFFER, 4, 16);
    let (function, settings) = Steered::over(Arc::new(Function(card)), features);
    let config = DeviceConfig {
        queue_pairs: 4,
        ..DeviceConfig::default()
    };
    let (device, _pairs) = Device::open(function, config).unwrap();
    settings.lock().unwrap().writes.clear();
    (device, settings)
}

fn writes(settings: &Mutex<Settings>) -> Vec<(u64, u32)> {
    std::mem::take(&mut settings.lock().unwrap().writes)
}

/// The published vectors: source, destination, hash over addresses, hash with ports of TCP.
const VECTORS: [(&str, &str, u32, u32); 8] = [
    (
        "66.9.149.187:2794",
        "161.142.100.80:1766",
        0x323e_8fc2,
        0x51cc_c178,
    ),
    (
        "199.92.111.2:14230",
        "65.69.140.83:4739",
        0xd718_262a,
        0xc626_b0ea,
    ),
    (
        "24.19.198.95:12898",
        "12.22.207.184:38024",
        0xd2d0_a5de,
        0x5c2b_394a,
    ),
    (
        "38.27.205.30:48228",
        "209.142.163.6:2217",
        0x8298_9176,
        0xafc7_327f,
    ),
    (
        "153.39.163.191:44251",
        "202.188.127.2:1303",
        0x5d18_09c5,
        0x10e8_28a2,
    ),
    (
        "[3ffe:2501:200:1fff::7]:2794",
        "[3ffe:2501:200:3::1]:1766",
        0x2cc1_8cd5,
        0x4020_7d3d,
    ),
    (
        "[3ffe:501:8::260:97ff:fe40:efab]:14230",
        "[ff02::1]:4739",
        0x0f0c_461c,
        0xdde5_1bbf,
    ),
    (
        "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
        "[fe80::200:f8ff:fe21:67cf]:38024",
        0x4b61_e985,
        0x02d1_feef,
    ),
];

#[test]
fn bug_42_hashes_are_the_published_ones_with_and_without_ports() {
    let all = RssOptions::equal(4).unwrap();
    let addresses = HashTypes::IPV4 | HashTypes::IPV6;
    let without = all.clone().with_types(addresses);
    for (source, destination, plain, with_ports) in VECTORS {
        let source: SocketAddr = source.parse().unwrap();
        let destination: SocketAddr = destination.parse().unwrap();
        let tcp = Tuple::tcp(source, destination).unwrap();
        let udp = Tuple::udp(source, destination).unwrap();
        let fragment = Tuple::ip(source.ip(), destination.ip()).unwrap();
        let six = source.is_ipv6();
        let name = |four, six_: &'static str| if six { six_ } else { four };
        let hash = |options: &RssOptions, flow| {
            let (hash, report) = options.hash(flow).unwrap();
            (hash, report.name(), report.value())
        };
        let value = |four: u16| four + if six { 3 } else { 0 };
        assert_eq!(
            hash(&all, &tcp),
            (with_ports, name("tcp4", "tcp6"), value(2))
        );
        assert_eq!(
            hash(&all, &udp),
            (with_ports, name("udp4", "udp6"), value(3))
        );
        assert_eq!(hash(&all, &fragment), (plain, name("ip4", "ip6"), value(1)));
        assert_eq!(hash(&without, &tcp), (plain, name("ip4", "ip6"), value(1)));
        assert_eq!(all.pair(&tcp), (with_ports % 128 % 4) as u16);
    }
}

#[test]
fn frames_without_a_type_have_no_hash_and_go_to_the_unclassified_pair() {
    let source: SocketAddr = "10.0.0.1:1".parse().unwrap();
    let destination: SocketAddr = "10.0.0.2:2".parse().unwrap();
    let options = RssOptions::equal(4).unwrap();
    let options = options.with_unclassified(3).unwrap();
    let udp = Tuple::udp(source, destination).unwrap();
    let tcp = Tuple::tcp(source, destination).unwrap();
    // TCP of either family says nothing of UDP, nor of other protocols.
    let options = options.with_types(HashTypes::TCP4 | HashTypes::UDP6 | HashTypes::IPV6);
    assert!(options.hash(&tcp).is_some());
    assert_eq!((options.hash(&udp), options.pair(&udp)), (None, 3));
    let fragment = Tuple::ip(source.ip(), destination.ip()).unwrap();
    assert_eq!(
        (options.hash(&fragment), options.pair(&fragment)),
        (None, 3)
    );
    let six: SocketAddr = "[::1]:1".parse().unwrap();
    assert_eq!(Tuple::tcp(source, six), Err(RssError::Families));
}

#[test]
fn tables_are_as_ethtool_makes_them() {
    let equal = RssOptions::equal(3).unwrap();
    let expected: Vec<u16> = (0..128).map(|i| i % 3).collect();
    assert_eq!(equal.table(), expected);
    // ethtool -X DEV weight 6 2: entries 0 to 95, then 96 to 127.
    let weighted = equal.clone().with_weights(&[6, 2]).unwrap();
    assert!(weighted.table()[..96].iter().all(|pair| *pair == 0));
    assert!(weighted.table()[96..].iter().all(|pair| *pair == 1));
    // One third each does not divide: entry i is of the first pair whose end lies beyond it.
    let thirds = equal.clone().with_weights(&[1, 0, 1, 1]).unwrap();
    let count = |of| thirds.table().iter().filter(|pair| **pair == of).count();
    assert_eq!([count(0), count(1), count(2), count(3)], [42, 0, 43, 43]);
    let text = |result: Result<RssOptions, RssError>| result.unwrap_err().to_string();
    assert!(text(equal.clone().with_weights(&[0, 0])).contains("weights of 0"));
    assert!(text(equal.clone().with_weights(&[100, 29])).contains("at most 128"));
    assert!(text(equal.clone().with_weights(&[1; 65])).contains("65 queue pairs"));
    assert!(text(equal.clone().with_weights(&[u32::MAX; 64])).contains("weights of"));
    for entries in [0, 3, 256] {
        let error = equal.clone().with_table(vec![0; entries]);
        assert!(text(error).contains("a power of two"));
    }
    assert!(text(equal.clone().with_table(vec![64])).contains("queue pair 64"));
    assert!(text(equal.with_unclassified(64)).contains("queue pair 64"));
    assert!(text(RssOptions::equal(0)).contains("1 to 64"));
    assert!(text(RssOptions::equal(65)).contains("1 to 64"));
}

#[test]
fn keys_and_types_are_read_as_they_are_printed() {
    let text = key_text(&KEY);
    assert!(text.starts_with("6d:5a:56:da:25") && text.len() == 119);
    assert_eq!(parse_key(&text), Ok(KEY));
    assert_eq!(parse_key(&text.replace(':', "").to_uppercase()), Ok(KEY));
    assert_eq!(parse_key("6d:5a"), Err(RssError::Key(2)));
    assert_eq!(parse_key(&format!("{text}:0")), Err(RssError::Key(41)));
    assert_eq!(parse_key("0x6d"), Err(RssError::KeyDigit('x')));
    assert_eq!(parse_key(""), Err(RssError::Key(0)));
    let types = HashTypes::TCP4 | HashTypes::IPV6;
    assert_eq!(types.to_string(), "tcp4,ip6");
    assert_eq!("ip6,tcp4".parse(), Ok(types));
    for set in [HashTypes::empty(), HashTypes::all()] {
        assert_eq!(set.to_string().parse(), Ok(set));
    }
    let error = "tcp".parse::<HashTypes>().unwrap_err();
    assert!(error.to_string().contains("tcp4"), "{error}");
}

#[test]
fn rss_is_staged_whole_and_then_applied() {
    let (device, settings) = open(ALL);
    assert_eq!(device.rss().unwrap(), None);
    let options = RssOptions::equal(4).unwrap();
    let table: Vec<u16> = (0..64).map(|i| 3 - i % 4).collect();
    let options = options
        .with_table(table)
        .unwrap()
        .with_types(HashTypes::TCP4);
    let options = options.with_unclassified(2).unwrap();
    device.set_rss(Some(&options)).unwrap();
    let done = writes(&settings);
    // The key's first byte is in the lowest bits of the first row.
    assert_eq!(done[0], (0x240, 0xda56_5a6d));
    assert_eq!(done[9], (0x264, 0xfa01_acbe));
    assert_eq!(done[10], (0x400, 3));
    assert_eq!(done[73], (0x4fc, 0));
    assert_eq!(done[74..], [(0x204, 2), (0x208, 6), (0x20c, 2), (0x210, 3)]);
    assert_eq!(device.rss().unwrap(), Some(options));
    device.set_rss(None).unwrap();
    assert_eq!(writes(&settings), [(0x210, 0)]);
    assert_eq!(device.rss().unwrap(), None);
}

#[test]
fn rss_that_cannot_be_is_refused_and_nothing_is_written() {
    let (device, settings) = open(ALL);
    let five = RssOptions::equal(5).unwrap();
    let error = device.set_rss(Some(&five)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "queue pair 4 cannot receive: 4 are in use, 0 to 3; name one of them, or raise their number \
         first"
    );
    let caps = |value| settings.lock().unwrap().values.insert(w::RSS_CAPS, value);
    let two = RssOptions::equal(2).unwrap();
    let refused = || device.set_rss(Some(&two)).unwrap_err().to_string();
    caps(0x3f28_0040);
    assert!(refused().contains("too long for this card, which has 64"));
    caps(0x3f34_0080);
    assert!(refused().contains("this card's key has 52 bytes"));
    caps(0x0728_0080);
    assert!(refused().contains("no hash over ip6,tcp6,udp6"));
    assert!(writes(&settings).is_empty());
    caps(0x3f28_0080);
    settings.lock().unwrap().stuck = Some(w::RSS_TYPES);
    let error = device.set_rss(Some(&two)).unwrap_err();
    assert!(matches!(error, Error::Readback(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("RSS_TYPES is 0x0 after writing 0x3f")
    );
    // It was not applied.
    assert_eq!(settings.lock().unwrap().get(w::RSS_APPLY), 0);
    assert_eq!(device.rss().unwrap(), None);
}

#[test]
fn pairs_that_a_table_names_are_not_taken_out_of_use() {
    let (device, _settings) = open(ALL);
    assert_eq!(device.receiving_pairs().unwrap(), 4);
    device
        .set_rss(Some(&RssOptions::equal(3).unwrap()))
        .unwrap();
    let error = device.set_receiving_pairs(2).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("queue pair 2 cannot receive: 2 are in use")
    );
    assert_eq!(device.receiving_pairs().unwrap(), 4);
    device.set_receiving_pairs(3).unwrap();
    device.set_rss(None).unwrap();
    device.set_receiving_pairs(1).unwrap();
    assert_eq!(device.receiving_pairs().unwrap(), 1);
    for pairs in [0, 5] {
        let error = device.set_receiving_pairs(pairs).unwrap_err();
        assert!(error.to_string().contains("give 1 to 4"), "{error}");
    }
}

#[test]
fn periods_of_following_are_powers_of_two_of_cycles() {
    let (device, settings) = open(ALL);
    assert_eq!(device.follow().unwrap(), FollowOptions::default());
    let set = |on, period, kept| {
        device.set_follow(&FollowOptions { on, period }).unwrap();
        let found = device.follow().unwrap();
        assert_eq!((found.on, found.period), (on, kept));
        writes(&settings)[0]
    };
    let nanos = Duration::from_nanos;
    // 8 ns a cycle: 2^10 is the least, 2^17 the next one above a millisecond.
    assert_eq!(set(true, nanos(1), nanos(8 << 10)), (0x218, 0x0a01));
    let ms = Duration::from_millis(1);
    assert_eq!(set(false, ms, nanos(8 << 17)), (0x218, 0x1100));
    assert_eq!(set(true, nanos(8 << 40), nanos(8 << 40)), (0x218, 0x2801));
    for period in [Duration::ZERO, nanos((8 << 40) + 1), Duration::MAX] {
        let error = device.set_follow(&FollowOptions { on: true, period });
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("this card takes more than 0, up to 8796"),
            "{error}"
        );
    }
    assert!(writes(&settings).is_empty());
}

#[test]
fn coalescing_is_written_in_cycles_of_the_queue_or_of_all() {
    let (device, settings) = open(ALL);
    let us = Duration::from_micros;
    let of = |packets, time| Coalescing { packets, time };
    let (rx, tx) = (Direction::Receive, Direction::Transmit);
    device.set_coalescing(2, tx, &of(8, us(50))).unwrap();
    // Virtqueue 5.
    assert_eq!(writes(&settings), [(0x2028, 8), (0x202c, 6250)]);
    assert_eq!(device.coalescing(2, tx).unwrap(), of(8, us(50)));
    assert_eq!(device.coalescing(2, rx).unwrap(), Coalescing::default());
    device.set_all_coalescing(rx, &of(64, us(100))).unwrap();
    assert_eq!(writes(&settings), [(0x2400, 64), (0x2404, 12_500)]);
    device.set_all_coalescing(tx, &of(1, us(0))).unwrap();
    assert_eq!(writes(&settings), [(0x2408, 1), (0x240c, 0)]);
    assert_eq!(device.coalescing(3, rx).unwrap(), of(64, us(100)));
    assert_eq!(device.coalescing(2, tx).unwrap(), of(1, us(0)));
    // Part of a cycle counts as one.
    device
        .set_coalescing(0, rx, &of(65_535, Duration::from_nanos(1)))
        .unwrap();
    assert_eq!(writes(&settings), [(0x2000, 65_535), (0x2004, 1)]);
}

#[test]
fn coalescing_that_does_not_fit_is_refused_and_nothing_is_written() {
    let (device, settings) = open(ALL);
    let set = |pair, packets, time| {
        let coalescing = Coalescing { packets, time };
        let error = device.set_coalescing(pair, Direction::Receive, &coalescing);
        error.unwrap_err().to_string()
    };
    assert!(set(0, 65_536, Duration::ZERO).contains("65536 packets are not possible"));
    let longest = Duration::from_nanos(8 * 8_388_607);
    let error = set(0, 1, longest + Duration::from_nanos(1));
    assert!(
        error.contains("this card takes up to 67.108856ms"),
        "{error}"
    );
    assert!(set(0, 1, Duration::MAX).contains("67.108856ms"));
    assert!(set(4, 1, Duration::ZERO).contains("queue pair 4 is not there: there are 4, 0 to 3"));
    assert!(writes(&settings).is_empty());
    // The limit is one of cycles.
    settings.lock().unwrap().clock_hz = 250_000_000;
    assert!(set(0, 1, longest).contains("33.554428ms"));
    settings.lock().unwrap().clock_hz = 0;
    assert!(set(0, 1, longest).contains("CLOCK_HZ is 0"));
    settings.lock().unwrap().clock_hz = 125_000_000;
    settings.lock().unwrap().stuck = Some(w::COAL_TIME);
    assert!(set(0, 1, longest).contains("COAL_TIME is 0x0 after writing 0x7fffff"));
}

const A: [u8; 6] = [0x02, 0xfe, 1, 2, 3, 4];
const B: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
const C: [u8; 6] = [0x02, 0, 0, 0, 0, 9];

#[test]
fn filter_is_written_address_by_address_and_an_address_that_stays_is_never_out() {
    let (device, settings) = open(ALL);
    assert_eq!(device.filter().unwrap(), FilterOptions::default());
    let options = FilterOptions::station(A).with_address(B);
    assert_eq!(device.set_filter(&options).unwrap(), Filtered::AsAsked);
    assert_eq!(
        writes(&settings),
        [
            (0x600, 0x0201_fe02),
            (0x604, 0x8000_0403),
            (0x608, 0x0000_3333),
            (0x60c, 0x8000_0100),
            (0x220, 0),
        ]
    );
    assert_eq!(device.filter().unwrap(), options);
    // B stays where it is, C takes the place of A, and what was given twice is there once.
    let options = FilterOptions::station(C).with_address(B).with_address(C);
    let options = options.with_modes(Modes::ALL_MULTICAST | Modes::NO_BROADCAST);
    device.set_filter(&options).unwrap();
    assert_eq!(
        writes(&settings),
        [(0x600, 2), (0x604, 0x8000_0900), (0x220, 0x22)]
    );
    device.set_filter(&FilterOptions::default()).unwrap();
    assert_eq!(
        writes(&settings),
        [(0x600, 0), (0x604, 0), (0x608, 0), (0x60c, 0), (0x220, 1)]
    );
}

#[test]
fn more_addresses_than_the_card_holds_make_it_promiscuous() {
    let (device, settings) = open(ALL);
    let many = |count: u8| {
        (0..count).fold(FilterOptions::station(A), |options, n| {
            options.with_address([2, 0, 0, 0, 0, n])
        })
    };
    assert_eq!(device.set_filter(&many(15)).unwrap(), Filtered::AsAsked);
    assert_eq!(settings.lock().unwrap().get(w::RX_FILTER), 0);
    writes(&settings);
    let filtered = device.set_filter(&many(16)).unwrap();
    let (wanted, room) = (17, 16);
    assert_eq!(filtered, Filtered::Promiscuous { wanted, room });
    // First everything is taken, then rows are given up.
    assert_eq!(writes(&settings)[0], (0x220, 1));
    // What was asked for is shown, and comes true when it fits.
    assert_eq!(device.filter().unwrap(), many(16));
    assert_eq!(device.set_filter(&many(2)).unwrap(), Filtered::AsAsked);
    assert_eq!(writes(&settings).last(), Some(&(0x220, 0)));
}

#[test]
fn vlans_are_bits_of_rows_and_only_rows_that_change_are_written() {
    let (device, settings) = open(ALL);
    let vlans = Vlans::of([0, 31, 33, 4095]).unwrap();
    assert_eq!(vlans.iter().collect::<Vec<_>>(), [0, 31, 33, 4095]);
    let options = FilterOptions::default().with_vlans(vlans);
    device.set_filter(&options).unwrap();
    assert_eq!(
        writes(&settings),
        [
            (0x800, 0x8000_0001),
            (0x804, 2),
            (0x9fc, 0x8000_0000),
            (0x220, 0x101)
        ]
    );
    let options = FilterOptions::default().with_vlans(Vlans::of([33]).unwrap());
    device.set_filter(&options).unwrap();
    assert_eq!(writes(&settings), [(0x800, 0), (0x9fc, 0), (0x220, 0x101)]);
    assert_eq!(Vlans::of([4096]), Err(FilterError::Vlan(4096)));
    assert!(!Vlans::default().contains(u16::MAX));
}

#[test]
fn card_without_steering_filters_and_coalescing_says_so() {
    let (device, settings) = open(0);
    let pair = RssOptions::equal(1).unwrap();
    let follow = FollowOptions::default();
    let filter = FilterOptions::default();
    let coalescing = Coalescing::default();
    let rx = Direction::Receive;
    let rss = [device.set_rss(Some(&pair)), device.rss().map(drop)];
    for error in rss.map(Result::unwrap_err) {
        assert!(matches!(error, Error::Rss(RssError::NotThere)), "{error}");
        assert!(error.to_string().contains("FEATURES.steering"));
    }
    let follow = [device.set_follow(&follow), device.follow().map(drop)];
    for error in follow.map(Result::unwrap_err) {
        assert!(matches!(error, Error::Follow(FollowError::NotThere)));
        assert!(error.to_string().contains("FEATURES.steering"));
    }
    let filter = [
        device.set_filter(&filter).map(drop),
        device.filter().map(drop),
    ];
    for error in filter.map(Result::unwrap_err) {
        assert!(matches!(error, Error::Filter(FilterError::NotThere)));
        assert!(error.to_string().contains("FEATURES.filters"));
    }
    let coalescing = [
        device.set_coalescing(0, rx, &coalescing),
        device.set_all_coalescing(rx, &coalescing),
        device.coalescing(0, rx).map(drop),
    ];
    for error in coalescing.map(Result::unwrap_err) {
        assert!(matches!(error, Error::Coalesce(CoalesceError::NotThere)));
        assert!(error.to_string().contains("FEATURES.coalescing"));
    }
    // Off is what it is.
    device.set_rss(None).unwrap();
    assert!(writes(&settings).is_empty());
}
