//! Few buffers: the card delivers what it holds before the driver has given all it has.

use ferronic_cosim_tests::lro::{Plan, Settings};
use ferronic_oracle::card;
use ferronic_oracle::lro::Cause;
use ferronic_oracle::stream::Bulk;
use ferronic_sim::model::WIDTHS;

use crate::bench::Bench;

/// Sixteen flows, each of which holds buffers, and few of them: above the mark no frame finds none.
/// Without it all that is held is delivered again and again, when the queue is empty.
#[test]
fn scarce_buffers_come_back_before_the_queue_is_empty() {
    for data_w in WIDTHS {
        let found = [0, 24].map(|low_water| {
            let name = format!("{data_w} bits, mark {low_water}");
            let mut bench = Bench::new(&name, *data_w, 0);
            bench.plan = Plan {
                ring: 64,
                buffers: 48,
                ..Plan::default()
            };
            bench.settings = Settings {
                low_water,
                ..Settings::default()
            };
            let stream = Bulk {
                flows: 16,
                segments: 60,
                ..Bulk::default()
            };
            // A frame in the time in which the driver gives a buffer back.
            let mut arrivals = stream.arrivals();
            for (at, arrival) in (0..).zip(&mut arrivals) {
                arrival.at = 400 * at;
            }
            let frames = arrivals.len();
            let (units, closed) = bench.undo(arrivals);
            let of = |cause| closed.by[card::counter(cause)];
            let (none, low) = (of(Cause::NoBuffer), of(Cause::LowWater));
            println!(
                "{name}: {:.1} segments a unit, {none} closed by none left, {low} by few",
                frames as f64 / units.len() as f64
            );
            (none, low)
        });
        let [(none, low), (none_marked, low_marked)] = found;
        assert!(none > 0 && low == 0, "{none} and {low} without a mark");
        assert!(
            none_marked == 0 && low_marked > 0,
            "{none_marked} and {low_marked} with one"
        );
    }
}
