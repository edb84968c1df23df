//! How much the card merges, beside what the model merges of the same.

use ferronic_cosim_tests::captures;
use ferronic_cosim_tests::lro::{Expected, Settings, steered};
use ferronic_oracle::card;
use ferronic_oracle::lro::Config;
use ferronic_oracle::stream::Bulk;
use ferronic_oracle::vectors::Arrival;
use ferronic_sim::model::WIDTHS;

use crate::bench::Bench;

/// Segments of a unit, on the average of what was opened or merged.
fn per_unit(opened: u64, merged: u64) -> f64 {
    (opened + merged) as f64 / opened.max(1) as f64
}

/// As fast as the data path takes them, in cycles.
fn paced(frames: Vec<Vec<u8>>, data_w: u32) -> Vec<Arrival> {
    let mut at = 0;
    let arrivals = frames.into_iter().map(|frame| {
        at += frame.len().div_ceil(data_w as usize / 8) as u64;
        Arrival {
            at,
            queue: 0,
            frame,
        }
    });
    arrivals.collect()
}

#[test]
fn captures_are_merged_as_the_model_merges_them() {
    for capture in captures().expect("captures can be read") {
        for data_w in WIDTHS {
            // With nothing that ends by time every unit is compared.
            let name = format!("{}, {data_w} bits", capture.name);
            let bench = Bench::new(&name, *data_w, 0);
            let units = bench.compare(capture.frames.clone());
            // With the times that the card has after a reset, how many there are.
            let mut bench = Bench::new(&name, *data_w, 0);
            bench.settings = Settings {
                gap: 12_500,
                hold: 50_000,
                ..Settings::default()
            };
            let arrivals = steered(paced(capture.frames.clone(), *data_w), 1);
            let config = Config {
                gap: 12_500,
                hold: 50_000,
                ..card::config()
            };
            let expected = Expected::of(config, &arrivals);
            let (some, closed) = bench.undo(arrivals);
            let found = per_unit(closed.opened.into(), closed.merged.into());
            let wanted = per_unit(expected.counters.opened, expected.counters.merged);
            println!(
                "{name}: {found:.2} segments a unit, the model {wanted:.2}; {} units, {} without times, \
                 of {} frames",
                some.len(),
                units.len(),
                capture.frames.len()
            );
            assert_eq!(format!("{found:.2}"), format!("{wanted:.2}"), "{name}");
        }
    }
}

#[test]
fn bulk_transfers_fill_their_units() {
    for data_w in WIDTHS {
        for v6 in [false, true] {
            for stamps in [false, true] {
                let stream = Bulk {
                    v6,
                    stamps,
                    segments: 440,
                    ..Bulk::default()
                };
                let name = format!("{data_w} bits, IPv6 {v6}, stamps {stamps}");
                let bench = Bench::new(&name, *data_w, 0);
                let units = bench.compare(stream.arrivals().into_iter().map(|a| a.frame));
                let figure = 440.0 / units.len() as f64;
                println!("{name}: {figure:.1} segments a unit");
                assert!(figure >= 40.0, "{figure}");
            }
        }
    }
}

#[test]
fn interleaved_flows_fill_the_units_of_all_contexts() {
    for data_w in WIDTHS {
        for shuffled in [None, Some(1)] {
            let stream = Bulk {
                flows: 16,
                segments: 88,
                shuffled,
                ..Bulk::default()
            };
            let name = format!("{data_w} bits, shuffled {shuffled:?}");
            let bench = Bench::new(&name, *data_w, 0);
            let units = bench.compare(stream.arrivals().into_iter().map(|a| a.frame));
            let figure = 16.0 * 88.0 / units.len() as f64;
            println!("{name}: {figure:.1} segments a unit");
            assert!(figure >= 30.0, "{figure}");
        }
    }
}

/// Cycles from the first beat that the card took of many frames to the last, and units that were
/// merged.
fn cycles(data_w: u32, frame: usize, v6: bool, strict: bool) -> (u64, u64) {
    let stream = Bulk {
        v6,
        mtu: frame - 14,
        segments: if frame > 5000 { 400 } else { 600 },
        ..Bulk::default()
    };
    let mut bench = Bench::new(format!("{data_w} bits, {frame} bytes"), data_w, 0);
    bench.settings.strict = strict;
    let arrivals = stream.arrivals();
    let mut receiver = bench.open();
    receiver.run(5000);
    let start = receiver.now();
    receiver.push(&arrivals);
    receiver.settle();
    receiver.stop();
    receiver.check();
    assert_eq!(receiver.segments(), arrivals.len());
    let opened = receiver.closed().opened;
    assert_eq!(opened > 0, strict);
    let end = receiver.raw.function.sim().port.stats.last_rx;
    (end - start, opened.into())
}

#[test]
fn merging_costs_no_cycle_a_frame() {
    for data_w in WIDTHS {
        for frame in [64, 80, 128, 256, 600, 1514, 9014] {
            for v6 in [false, true] {
                if v6 && frame < 80 {
                    continue;
                }
                let (off, _) = cycles(*data_w, frame, v6, false);
                let (on, units) = cycles(*data_w, frame, v6, true);
                println!("{data_w} bits, {frame} bytes, IPv6 {v6}: {off} cycles, merged {on}");
                // The words of the scratch, once a unit.
                assert!(on <= off + 4 * units, "{on} cycles, {off} without merging");
            }
        }
    }
}
