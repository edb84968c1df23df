//! Transmission of TCP as stacks do it: large frames that the card cuts into segments, scattered ones.

use ferronic::queue::Wakeup;
use ferronic_cosim_tests::tso::{self, Buffers};
use ferronic_figures::Figure;

use crate::{Case, Direction};

/// Prints what is reached and adds it to the figures.
pub fn measure(data_w: u32, quick: bool, figures: &mut Vec<Figure>) {
    let base = Case {
        data_w,
        queues: 1,
        latency: 125,
        mps: 256,
        frame: tso::SEGMENT,
        direction: Direction::Tx,
        indirect: true,
    };
    let count = if quick { 250 } else { 1800 };
    for (len, buffers, indirect) in [
        (tso::FRAME, Buffers::Copied, true),
        (tso::FRAME, Buffers::Shared, true),
        (tso::frame_of(4), Buffers::Shared, true),
        (tso::frame_of(1), Buffers::Shared, true),
        (tso::frame_of(1), Buffers::Shared, false),
        (tso::frame_of(1), Buffers::Copied, true),
    ] {
        let case = Case { indirect, ..base };
        let mut card = crate::card(case, Wakeup::Interrupt);
        let got = tso::steady(&mut card, len, buffers, count);
        let per = |value: u64| value as f64 / got.frames as f64;
        let (load, bound) = match len {
            tso::FRAME => ("tso", tso::bound(data_w)),
            tso::SEGMENT => ("checksum", None),
            _ => ("tso", None),
        };
        let bound = bound.map_or(String::new(), |bound| format!(", bound {bound}"));
        println!(
            "{data_w:>6} {load} of {len} bytes, {}{}: {:.1} cycles a segment, {:.3} of the limit{bound}, \
             {:.2} TLPs and {:.1} PCIe bytes a segment",
            buffers.name(),
            if indirect { "" } else { ", no tables" },
            per(got.cycles),
            got.share(),
            per(got.link.tlps()),
            per(got.link.wire_bytes()),
        );
        for (name, value, unit) in [
            ("cycles_per_frame", per(got.cycles), "cycles"),
            ("share_of_limit", got.share(), "1"),
            ("tlps_per_frame", per(got.link.tlps()), "TLPs"),
            ("pcie_bytes_per_frame", per(got.link.wire_bytes()), "bytes"),
        ] {
            figures.push(
                crate::figure(case, name, value, unit)
                    .with("load", load)
                    .with("gso_bytes", len)
                    .with("gso_size", tso::GSO_SIZE)
                    .with("buffers", buffers.name())
                    .with("indirect", indirect),
            );
        }
    }
}
