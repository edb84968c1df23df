//! What is done with requests, on a card whose window has everything.

#[path = "../../../driver/tests/support/settings.rs"]
mod settings;

use std::sync::{Arc, Mutex};

use ferronic::spec::window as w;
use ferronic::{Device, DeviceConfig};
use ferronic_sim::{Sim, SimConfig, SimFunction};
use serde_json::{Value, json};
use settings::{ALL, Settings, Steered};

use super::message::Request;
use super::owner::{Plain, handle};

struct Bench {
    device: Device,
    settings: Arc<Mutex<Settings>>,
}

impl Bench {
    fn new() -> Self {
        let (_, wire) = ferronic_sim::wire::WireQueue::new();
        let sim = Sim::with_wire(SimConfig::default(), wire);
        let function = SimFunction::new(sim.expect("the model starts")).expect("a card");
        let (function, settings) = Steered::over(Arc::new(function), ALL);
        let config = DeviceConfig {
            queue_pairs: 4,
            ring_size: Some(16),
            ..DeviceConfig::default()
        };
        let (device, _pairs) = Device::open(function, config).expect("it opens");
        Self { device, settings }
    }

    /// The state after a request, or why it was refused.
    fn ask(&self, request: Value) -> Result<Value, String> {
        let request: Request = serde_json::from_value(request).expect("a request");
        let mut owner = Plain {
            device: &self.device,
            transmitting: 4,
        };
        handle(&mut owner, &request).map_err(|e| e.to_string())
    }

    fn does(&self, request: Value) -> Value {
        self.ask(request).expect("it is done")
    }

    fn refuses(&self, request: Value, why: &str) {
        let error = self.ask(request).expect_err("it is refused");
        assert!(error.contains(why), "{error}");
    }

    fn register(&self, offset: u64) -> u32 {
        self.settings.lock().expect("no panic").get(offset)
    }
}

#[test]
fn rss_is_changed_in_parts_and_switched_off() {
    let bench = Bench::new();
    let state = bench.does(json!({"rss": null}));
    assert_eq!(
        state,
        json!({"table": null, "follow": true, "follow_us": 2_147_483})
    );
    let state = bench.does(json!({"rss": {"equal": 3, "types": "tcp4,tcp6", "unclassified": 1}}));
    let table = &state["table"];
    assert_eq!(table["entries"].as_array().map(Vec::len), Some(128));
    assert_eq!(
        (&table["entries"][4], &table["unclassified"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(bench.register(w::RSS_APPLY), 3);
    assert_eq!(bench.register(w::RSS_TABLE + 4 * 5), 2);
    // The rest stays.
    let key = "00".repeat(39) + "2a";
    let state = bench.does(json!({"rss": {"key": key, "table": [3, 2]}}));
    let table = &state["table"];
    assert_eq!(table["entries"], json!([3, 2]));
    assert_eq!(table["types"], "tcp4,tcp6");
    assert!(
        table["key"]
            .as_str()
            .is_some_and(|key| key.ends_with(":00:2a"))
    );
    assert_eq!(bench.register(w::RSS_KEY + 36), 0x2a00_0000);
    for (change, why) in [
        (
            json!({"equal": 5}),
            "queue pair 4 cannot receive: 4 are in use",
        ),
        (json!({"equal": 2, "weights": [1]}), "a table is given once"),
        (json!({"off": true, "key": "00"}), "together with off"),
        (json!({"key": "00:11"}), "a key of 2 bytes"),
        (json!({"types": "tcp"}), "\"tcp\" is no hash type"),
        (json!({"weights": [0, 0]}), "weights of 0"),
        (json!({"table": [1, 2, 3]}), "a power of two"),
        (json!({"follow_us": 0}), "a period of 0ns"),
    ] {
        bench.refuses(json!({ "rss": change }), why);
    }
    bench.refuses(
        json!({"queues": 3}),
        "queue pair 3 cannot receive: 3 are in use",
    );
    let state = bench.does(json!({"rss": {"off": true, "follow": false, "follow_us": 1000}}));
    // 2^17 cycles of 8 ns.
    assert_eq!(
        state,
        json!({"table": null, "follow": false, "follow_us": 1048})
    );
    assert_eq!(
        (bench.register(w::RSS_APPLY), bench.register(w::RX_FOLLOW)),
        (0, 0x1100)
    );
    assert_eq!(bench.does(json!({"queues": 3}))["receiving"], 3);
}

#[test]
fn coalescing_is_changed_of_a_queue_or_of_all() {
    let bench = Bench::new();
    let change = |queue: Value, rx, tx, packets, usecs| json!({"coalesce": {"queue": queue, "rx": rx, "tx": tx, "packets": packets, "usecs": usecs}});
    let state = bench.does(change(Value::Null, true, true, 8, 50));
    let of = |queue, rx: (u32, f64), tx: (u32, f64)| json!({"queue": queue, "rx_packets": rx.0, "rx_usecs": rx.1, "tx_packets": tx.0, "tx_usecs": tx.1});
    assert_eq!(state.as_array().map(Vec::len), Some(4));
    assert_eq!(state[3], of(3, (8, 50.0), (8, 50.0)));
    let state = bench.does(change(json!(2), false, true, 64, 100));
    assert_eq!(state[2], of(2, (8, 50.0), (64, 100.0)));
    assert_eq!(state[1], of(1, (8, 50.0), (8, 50.0)));
    assert_eq!(bench.register(w::COAL_TIME + 8 * 5), 12_500);
    bench.refuses(
        change(json!(4), true, true, 1, 1),
        "queue pair 4 is not there",
    );
    bench.refuses(change(json!(0), true, true, 1, 67_109), "up to 67.108856ms");
    assert_eq!(bench.does(json!({"coalesce": null})), state);
}

#[test]
fn filters_are_changed_in_parts_and_keep_the_cards_own_address() {
    let bench = Bench::new();
    let state = bench.does(json!({"filter": null}));
    let modes = ["promiscuous", "multicast", "unicast", "broadcast"];
    let at_first = json!({"modes": modes, "addresses": [], "vlans": null, "room": 16});
    assert_eq!(state, at_first);
    let own = crate::options::mac(bench.device.mac());
    let state = bench.does(json!({"filter": {
        "modes": [["promiscuous", false], ["all-multicast", true], ["broadcast", false]],
    }}));
    assert_eq!(state["addresses"], json!([own]));
    assert_eq!(
        state["modes"],
        json!(["all-multicast", "multicast", "unicast"])
    );
    assert_eq!(bench.register(w::RX_FILTER), 0x22);
    let add = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
    let state = bench.does(json!({"filter": {"add": add, "remove": [own], "vlans": "1,100-102"}}));
    assert_eq!(state["addresses"], json!(add));
    assert_eq!(state["vlans"], "1,100-102");
    assert_eq!(bench.register(w::RX_FILTER), 0x122);
    assert_eq!(bench.register(w::RX_VLAN + 12), 0x70);
    for (change, why) in [
        (json!({"add": ["02:00:00:00:00"]}), "is no Ethernet address"),
        (
            json!({"add": ["02:00:00:00:00:0g"]}),
            "is no Ethernet address",
        ),
        (json!({"add": ["2:0:0:0:0:1"]}), "is no Ethernet address"),
        (json!({"modes": [["loud", true]]}), "\"loud\" is no mode"),
        (json!({"vlans": "4096"}), "4096 is not there"),
    ] {
        bench.refuses(json!({ "filter": change }), why);
    }
    assert_eq!(bench.does(json!({"filter": null})), state);
    let many: Vec<_> = (0..17).map(|n| format!("02:00:00:00:01:{n:02x}")).collect();
    let state = bench.does(json!({"filter": {"add": many}}));
    assert_eq!(state["addresses"].as_array().map(Vec::len), Some(19));
    assert_eq!(bench.register(w::RX_FILTER) & 1, 1);
    bench.does(json!({"filter": {"remove": many, "vlans": "all"}}));
    assert_eq!(bench.register(w::RX_FILTER), 0x22);
}
