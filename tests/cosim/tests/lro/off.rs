//! Without merging every frame is delivered as it came.

use ferronic_cosim_tests::captures;
use ferronic_cosim_tests::lro::{Expected, Plan, Receiver, steered, undone};
use ferronic_oracle::card;
use ferronic_oracle::lro::{Config, Profile};
use ferronic_oracle::stream::Traffic;
use ferronic_oracle::vectors::Arrival;
use ferronic_sim::SimConfig;
use ferronic_spec::Features;

/// What is received while no feature for merging is negotiated.
fn off(name: &str, config: SimConfig, arrivals: &[Arrival], pairs: u16) {
    let arrivals = steered(arrivals.iter().cloned(), pairs);
    let plan = Plan {
        pairs,
        features: Features::VERSION_1 | Features::MRG_RXBUF | Features::GUEST_CSUM,
        ..Plan::default()
    };
    let mut receiver = Receiver::open(name, config, plan, None);
    receiver.push(&arrivals);
    receiver.settle();
    receiver.check();
    let model = Config {
        profile: Profile::Off,
        ..card::config()
    };
    let expected = Expected::of(model, &arrivals);
    let closed = receiver.closed();
    let same = expected.compare(&receiver.units, &closed, &arrivals);
    if let Err(difference) = same.and_then(|_| undone(&arrivals, &receiver.units)) {
        receiver.fail(&difference);
    }
}

#[test]
fn off_is_the_identity_for_random_streams() {
    for (seed, data_w) in [(1, 64), (2, 512)] {
        let mut traffic = Traffic::new(seed, 12, 1, 1000);
        let arrivals: Vec<Arrival> = (0..600).map(|_| traffic.arrival()).collect();
        let config = SimConfig {
            data_w,
            ..SimConfig::adversarial(seed)
        };
        off(&format!("{data_w} bits, seed {seed}"), config, &arrivals, 4);
    }
}

#[test]
fn off_is_the_identity_for_captures() {
    for capture in captures().expect("captures can be read") {
        let arrivals: Vec<Arrival> = capture
            .frames
            .iter()
            .map(|frame| Arrival {
                at: 0,
                queue: 0,
                frame: frame.clone(),
            })
            .collect();
        off(&capture.name, SimConfig::default(), &arrivals, 2);
    }
}
