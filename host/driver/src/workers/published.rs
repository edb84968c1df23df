//! Counters of a thread that others may read.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::queue::{RxStats, TxStats};

/// Two lines that only their thread writes, with plain stores; who reads them moves them once.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Published {
    rx: [AtomicU64; 8],
    tx: [AtomicU64; 8],
}

const _: () = assert!(size_of::<Published>() == 128 && align_of::<Published>() == 64);

fn store(to: &[AtomicU64; 8], values: [u64; 8]) {
    for (to, value) in to.iter().zip(values) {
        to.store(value, Ordering::Relaxed);
    }
}

fn load(from: &[AtomicU64; 8]) -> [u64; 8] {
    from.each_ref().map(|value| value.load(Ordering::Relaxed))
}

impl Published {
    pub fn set(&self, rx: &RxStats, tx: &TxStats) {
        let RxStats {
            frames,
            bytes,
            buffers,
            bursts,
            doorbells,
            units,
        } = *rx;
        store(
            &self.rx,
            [frames, bytes, buffers, bursts, doorbells, units, 0, 0],
        );
        let TxStats {
            frames,
            bytes,
            completed,
            bursts,
            doorbells,
            full,
            descriptors,
            segmented,
        } = *tx;
        store(
            &self.tx,
            [
                frames,
                bytes,
                completed,
                bursts,
                doorbells,
                full,
                descriptors,
                segmented,
            ],
        );
    }

    pub fn get(&self) -> (RxStats, TxStats) {
        let [frames, bytes, buffers, bursts, doorbells, units, ..] = load(&self.rx);
        let rx = RxStats {
            frames,
            bytes,
            buffers,
            bursts,
            doorbells,
            units,
        };
        let [
            frames,
            bytes,
            completed,
            bursts,
            doorbells,
            full,
            descriptors,
            segmented,
        ] = load(&self.tx);
        let tx = TxStats {
            frames,
            bytes,
            completed,
            bursts,
            doorbells,
            full,
            descriptors,
            segmented,
        };
        (rx, tx)
    }
}
