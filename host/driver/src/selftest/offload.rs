//! Checksums and segmentation: counted by the card, and looked at if the wire is a loopback.

use std::sync::Arc;
use std::time::Instant;

use super::traffic::{LOOP, TRAFFIC, WAIT, complete, open};
use super::{Outcome, failed, passed};
use crate::device::{Device, DeviceConfig};
use crate::error::Error;
use crate::offload::checksum::{fold, sum};
use crate::offload::{Segmentation, TxOffload, Verdict, verify};
use crate::pci::PciFunction;
use crate::queue::{PushResult, QueuePair};
use ferronic_spec::Features;

/// Payload of a segment.
pub(super) const SIZE: u16 = 1400;
/// Payload of a large frame: its last segment is not full.
pub(super) const PAYLOAD: usize = 20_000;
/// Addresses for documentation, which no host has (RFC 5737, RFC 3849).
const V4: [u8; 8] = [192, 0, 2, 1, 192, 0, 2, 2];
const V6: [u8; 4] = [0x20, 0x01, 0x0d, 0xb8];
/// Discarded by whoever got it nevertheless (RFC 863).
const PORT: u8 = 9;

/// A frame from this card to itself, with `payload` bytes that follow from their place.
pub(super) fn frame(device: &Device, v6: bool, udp: bool, payload: usize) -> (Vec<u8>, usize) {
    let mut frame = [device.mac(), device.mac()].concat();
    let number = if udp { 17 } else { 6 };
    let len = payload + if udp { 8 } else { 20 };
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((len as u16).to_be_bytes());
        frame.extend([number, 1]);
        for host in [1, 2] {
            frame.extend(V6);
            frame.extend([0; 11]);
            frame.push(host);
        }
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((len as u16 + 20).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 1, number, 0, 0]);
        frame.extend(V4);
        // Not a matter of CSUM.
        let check = !fold(sum(&frame[14..]));
        frame[24..26].copy_from_slice(&check.to_be_bytes());
    }
    frame.extend([0xc0, 0, 0, PORT]);
    if udp {
        frame.extend((len as u16).to_be_bytes());
        frame.extend([0, 0]);
    } else {
        frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    }
    let headers = frame.len();
    frame.extend((0..payload).map(|i| (i ^ i >> 8) as u8));
    (frame, headers)
}

/// A frame, what is asked for it, and how it must come back.
struct Job {
    frame: Vec<u8>,
    offload: TxOffload,
    headers: usize,
    segments: usize,
}

/// One of each kind that was negotiated.
fn jobs(device: &Device, offloads: Features) -> Result<Vec<Job>, Error> {
    let mut jobs = Vec::new();
    for (feature, v6, udp) in [
        (Features::HOST_TSO4, false, false),
        (Features::HOST_TSO6, true, false),
        (Features::HOST_USO, false, true),
        (Features::HOST_USO, true, true),
    ] {
        // A frame of one segment asks for its checksum alone.
        for (feature, payload) in [(Features::CSUM, 100), (feature, PAYLOAD)] {
            if !offloads.contains(feature) {
                continue;
            }
            let (mut frame, headers) = frame(device, v6, udp, payload);
            let len = frame.len();
            let offload = if feature == Features::CSUM {
                TxOffload::checksum(&mut frame).unwrap_or_default()
            } else {
                TxOffload::segment(&mut frame, len, SIZE)?
            };
            let segments = match offload {
                TxOffload::Segment { .. } => payload.div_ceil(SIZE.into()),
                _ => 1,
            };
            jobs.push(Job {
                frame,
                offload,
                headers,
                segments,
            });
        }
    }
    Ok(jobs)
}

/// Large frames leave in segments, and every checksum is right.
pub(super) fn offload(
    function: &Arc<dyn PciFunction>,
    config: &DeviceConfig,
) -> Result<Outcome, Error> {
    let (device, mut pairs) = open(function, config)?;
    let Some(QueuePair { tx, .. }) = pairs.first_mut() else {
        return failed("the card has no queue");
    };
    let jobs = jobs(&device, tx.offloads())?;
    if jobs.is_empty() {
        return Ok(Outcome::Skipped(
            "neither checksums nor segmentation were negotiated".into(),
        ));
    }
    let counted = |device: &Device| -> Result<Option<u64>, Error> {
        device.window().map(|w| Ok(w.queue(1)?.packets)).transpose()
    };
    let before = counted(&device)?;
    for job in &jobs {
        if tx.push_offload(&job.frame, job.offload)? == PushResult::Full {
            complete(&device, tx)?;
            if tx.push_offload(&job.frame, job.offload)? == PushResult::Full {
                return failed("a large frame does not fit into the empty ring");
            }
        }
    }
    complete(&device, tx)?;
    // A completed frame was read, and may still be on its way out.
    device.linger()?;
    let want: usize = jobs.iter().map(|job| job.segments).sum();
    if let (Some(before), Some(after)) = (before, counted(&device)?) {
        let sent = after.wrapping_sub(before);
        if sent != want as u64 {
            return failed(format!(
                "{want} segments were to leave, the card counted {sent}"
            ));
        }
    }
    let kinds = jobs
        .iter()
        .filter_map(|job| match job.offload {
            TxOffload::Segment { kind, .. } => Some(kind),
            _ => None,
        })
        .collect::<Vec<_>>();
    match back(&device, &mut pairs, &jobs)? {
        Back::Nothing => passed(format!(
            "{want} segments of {} frames left; none came back to be looked at",
            jobs.len()
        )),
        Back::Wrong(words) => failed(words),
        Back::All => passed(format!(
            "{want} segments of {} frames came back right; segmented: {}",
            jobs.len(),
            names(&kinds)
        )),
    }
}

fn names(kinds: &[Segmentation]) -> String {
    let mut names: Vec<_> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
    names.dedup();
    match names.len() {
        0 => "none".into(),
        _ => names.join(", "),
    }
}

enum Back {
    Nothing,
    Wrong(String),
    All,
}

/// Takes what comes back. Flows may come by several queues, each in order.
fn back(device: &Device, pairs: &mut [QueuePair], jobs: &[Job]) -> Result<Back, Error> {
    // Payload that came of each job.
    let mut came = vec![0; jobs.len()];
    let mut wrong = None;
    let mut last = Instant::now();
    let whole = |came: &[usize]| {
        let all = |(job, came): (&Job, &usize)| job.frame.len() - job.headers == *came;
        jobs.iter().zip(came).all(all)
    };
    while wrong.is_none() && !whole(&came) {
        for pair in &mut *pairs {
            pair.rx.receive(64, |received| {
                let mut bytes = Vec::new();
                received.copy_to(&mut bytes);
                let Some((at, job)) = owner(jobs, &came, &bytes) else {
                    return;
                };
                last = Instant::now();
                let rest = &job.frame[job.headers + came[at]..];
                let piece = &bytes[job.headers..];
                let verdict = verify(&bytes);
                if verdict != Verdict::Right {
                    wrong.get_or_insert(format!("a checksum came back as {verdict:?}"));
                } else if piece != &rest[..rest.len().min(SIZE.into())] {
                    wrong.get_or_insert("a segment came back changed or out of turn".into());
                }
                came[at] += piece.len();
            })?;
        }
        let nothing = came.iter().all(|came| *came == 0);
        if last.elapsed() > if nothing { LOOP } else { TRAFFIC } {
            return Ok(match nothing {
                true => Back::Nothing,
                false => Back::Wrong("not all segments came back".into()),
            });
        }
        let mut pending = false;
        for pair in &mut *pairs {
            pending |= pair.rx.arm()?;
        }
        if !pending && !whole(&came) {
            device.wait(WAIT)?;
        }
    }
    Ok(wrong.map_or(Back::All, Back::Wrong))
}

/// The first job of the same flow of which something is still to come.
fn owner<'a>(jobs: &'a [Job], came: &[usize], bytes: &[u8]) -> Option<(usize, &'a Job)> {
    jobs.iter().enumerate().find(|(at, job)| {
        let ip = if job.frame[12] == 8 { 26..34 } else { 20..54 };
        let same = |range: std::ops::Range<usize>| bytes.get(range.clone()) == job.frame.get(range);
        let protocol = if job.frame[12] == 8 { 23 } else { 20 };
        let flow = same(0..14) && same(ip) && same(protocol..protocol + 1);
        flow && bytes.len() > job.headers && came[*at] < job.frame.len() - job.headers
    })
}
