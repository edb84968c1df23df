//! Transmission of TCP in frames of 64 KB that the card cuts into segments.

use ferronic::queue::CompletionPolicy;
use ferronic_cosim_tests::tso::{self, Buffers};
use ferronic_figures::Figure;

use crate::{Case, Direction};

/// Prints what is reached and adds it to the figures.
pub fn measure(data_w: u32, quick: bool, figures: &mut Vec<Figure>) {
    let case = Case {
        data_w,
        queues: 1,
        latency: 125,
        mps: 256,
        frame: tso::SEGMENT,
        direction: Direction::Tx,
    };
    for buffers in [Buffers::Copied, Buffers::Shared] {
        let mut card = crate::card(case, CompletionPolicy::EventIndex);
        let got = tso::steady(&mut card, buffers, if quick { 5 } else { 40 });
        let per = |value: u64| value as f64 / got.frames as f64;
        let share = got.share();
        println!(
            "{data_w:>6} tso of {} bytes, {}: {:.1} cycles a segment, {share:.3} of the limit \
             (bound {}), {:.2} TLPs and {:.1} PCIe bytes a segment",
            tso::FRAME,
            buffers.name(),
            per(got.cycles),
            tso::bound(data_w).map_or("-".to_owned(), |bound| bound.to_string()),
            per(got.link.tlps()),
            per(got.link.wire_bytes()),
        );
        for (name, value, unit) in [
            ("cycles_per_frame", per(got.cycles), "cycles"),
            ("share_of_limit", share, "1"),
            ("tlps_per_frame", per(got.link.tlps()), "TLPs"),
            ("pcie_bytes_per_frame", per(got.link.wire_bytes()), "bytes"),
        ] {
            figures.push(
                crate::figure(case, name, value, unit)
                    .with("load", "tso")
                    .with("gso_bytes", tso::FRAME)
                    .with("gso_size", tso::GSO_SIZE)
                    .with("buffers", buffers.name()),
            );
        }
    }
}
