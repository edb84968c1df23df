//! Large receive offload, if the wire is a loopback: what the card cut into segments comes back
//! merged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::offload::{PAYLOAD, SIZE, frame};
use super::traffic::{LOOP, TRAFFIC, WAIT, complete, open};
use super::{Outcome, failed, passed};
use crate::device::{Device, DeviceConfig};
use crate::error::Error;
use crate::lro::{LroOptions, LroRequest};
use crate::offload::{TxOffload, Verdict, verify};
use crate::pci::PciFunction;
use crate::queue::{PushResult, QueuePair};
use ferronic_spec::Features;

/// What came back.
#[derive(Default)]
struct Back {
    payload: usize,
    frames: usize,
    units: usize,
    wrong: Option<&'static str>,
}

/// Segments of a large frame come back as units with the same payload.
pub(super) fn merging(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let config = DeviceConfig {
        // Nothing is split by a wire that is slow.
        lro: LroRequest::Needed(LroOptions {
            gap: Duration::from_millis(20),
            hold: Duration::from_millis(60),
            ..LroOptions::default()
        }),
        ..config.clone()
    };
    let (device, mut pairs) = match open(function, &config) {
        Err(Error::Lro(why)) => return Ok(Outcome::Skipped(why.to_string())),
        other => other?,
    };
    let Some(QueuePair { tx, .. }) = pairs.first_mut() else {
        return failed("the card has no queue");
    };
    let merged = device.features().contains(Features::GUEST_TSO4);
    if !merged || !tx.offloads().contains(Features::HOST_TSO4) {
        return Ok(Outcome::Skipped(
            "it takes GUEST_TSO4, and HOST_TSO4 to make segments with".into(),
        ));
    }
    let (mut frame, headers) = frame(&device, false, false, PAYLOAD);
    let len = frame.len();
    let offload = TxOffload::segment(&mut frame, len, SIZE)?;
    if tx.push_offload(&frame, offload)? == PushResult::Full {
        return failed("a large frame does not fit into the empty ring");
    }
    complete(&device, tx)?;
    let segments = PAYLOAD.div_ceil(SIZE.into());
    let back = receive(&device, &mut pairs, &frame, headers)?;
    match back {
        Back {
            wrong: Some(words), ..
        } => failed(words),
        Back { frames: 0, .. } => Ok(Outcome::Skipped(format!(
            "the wire is no loopback: nothing came back in {LOOP:?}"
        ))),
        Back { payload, .. } if payload < PAYLOAD => failed("not all segments came back"),
        Back { units: 0, .. } => failed(format!("{segments} segments came back, none was merged")),
        Back { frames, .. } => passed(format!("{segments} segments came back as {frames} frames")),
    }
}

/// Takes what comes back of a frame.
fn receive(
    device: &Device,
    pairs: &mut [QueuePair],
    sent: &[u8],
    headers: usize,
) -> Result<Back, Error> {
    let mut back = Back::default();
    let mut last = Instant::now();
    while back.wrong.is_none() && back.payload < PAYLOAD {
        for pair in &mut *pairs {
            pair.rx.receive(64, |received| {
                let mut bytes = Vec::new();
                received.copy_to(&mut bytes);
                // Addresses and protocol.
                let same =
                    |range: std::ops::Range<usize>| bytes.get(range.clone()) == sent.get(range);
                if bytes.len() <= headers || !same(0..14) || !same(23..24) || !same(26..38) {
                    return;
                }
                last = Instant::now();
                let piece = &bytes[headers..];
                let rest = &sent[headers + back.payload..];
                if !rest.starts_with(piece) {
                    back.wrong = Some("a segment came back changed or out of turn");
                } else if !received.is_unit() && verify(&bytes) != Verdict::Right {
                    back.wrong = Some("a checksum came back wrong");
                }
                back.payload = (back.payload + piece.len()).min(PAYLOAD);
                back.frames += 1;
                back.units += usize::from(received.is_merged_by_card());
            })?;
        }
        if last.elapsed() > if back.frames == 0 { LOOP } else { TRAFFIC } {
            break;
        }
        let mut pending = false;
        for pair in &mut *pairs {
            pending |= pair.rx.arm()?;
        }
        if !pending && back.payload < PAYLOAD {
            device.wait(WAIT)?;
        }
    }
    Ok(back)
}
