//! Whether what was delivered is what arrived.

use std::collections::{BTreeMap, BTreeSet};

use crate::lro::Unit;
use crate::packet::{Protocol, parse};
use crate::resegment::resegment;
use crate::sum::{fold, sum};
use crate::vectors::Arrival;

/// The frames of the wire that units stand for, with their queues.
///
/// # Errors
/// When a unit is not sound, or of another number of frames than it says.
pub fn cut(units: &[Unit]) -> Result<Vec<(u16, Vec<u8>)>, String> {
    let mut frames = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        let cut = resegment(&unit.header, &unit.frame)
            .map_err(|error| format!("unit {number} ({:?}): {error}", unit.cause))?;
        if cut.len() != unit.segments {
            return Err(format!(
                "unit {number}: {} frames, not {}",
                cut.len(),
                unit.segments
            ));
        }
        frames.extend(cut.into_iter().map(|frame| (unit.queue, frame)));
    }
    Ok(frames)
}

/// What a frame must stay in order with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kin {
    /// The frames of a flow: tags, addresses and ports.
    Flow(Vec<u8>, Vec<u8>),
    /// All TCP between two addresses, since ports cannot be told.
    Addresses(Vec<u8>),
    /// All frames of its queue, since no field can be trusted.
    Queue,
    /// Nothing.
    Stranger,
}

fn kin(frame: &[u8]) -> Kin {
    let half = |at: usize| match frame.get(at..at + 2) {
        Some(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
        None => 0,
    };
    let mut ip = 14;
    while ip < 22 && [0x8100, 0x88a8].contains(&half(ip - 2)) {
        ip += 4;
    }
    let version = frame.get(ip).map_or(0, |byte| byte >> 4);
    let (addresses, protocol) = match (half(ip - 2), version) {
        (0x0800, 4) => {
            let header = 4 * usize::from(frame[ip] & 15);
            match frame.get(ip..ip + header) {
                Some(bytes) if header >= 20 && fold(sum(bytes)) == 0xffff => {
                    (bytes[12..20].to_vec(), bytes[9])
                }
                _ => return Kin::Queue,
            }
        }
        (0x86dd, 6) => match frame.get(ip..ip + 40) {
            Some(bytes) => (bytes[8..40].to_vec(), bytes[6]),
            None => return Kin::Queue,
        },
        _ => return Kin::Stranger,
    };
    if protocol == 6
        && let Some(packet) = parse(frame)
        && packet.protocol == Protocol::Tcp
    {
        let ports = &frame[packet.transport..packet.transport + 4];
        let key = [&frame[12..ip], ports].concat();
        return Kin::Flow(addresses, key);
    }
    match protocol {
        6 | 0 | 43 | 44 | 51 | 60 => Kin::Addresses(addresses),
        _ => Kin::Stranger,
    }
}

/// That the same frames arrived and were delivered, and those of each flow in the same order, with
/// those among them that may be of the flow.
///
/// # Errors
/// With the first frame that differs.
pub fn same(arrivals: &[Arrival], delivered: &[(u16, Vec<u8>)]) -> Result<(), String> {
    let came: Vec<(u16, &[u8])> = arrivals.iter().map(|a| (a.queue, &a.frame[..])).collect();
    let went: Vec<(u16, &[u8])> = delivered.iter().map(|(q, f)| (*q, &f[..])).collect();
    let mut left: BTreeMap<(u16, &[u8]), usize> = BTreeMap::new();
    for frame in &went {
        *left.entry(*frame).or_default() += 1;
    }
    for (number, frame) in came.iter().enumerate() {
        match left.get_mut(frame) {
            Some(count) if *count > 0 => *count -= 1,
            _ => {
                let others = left.iter().filter(|(_, count)| **count > 0);
                let similar = others
                    .map(|(other, _)| *other)
                    .max_by_key(|(queue, other)| {
                        let alike = other.iter().zip(frame.1).filter(|(a, b)| a == b).count();
                        (alike, *queue == frame.0)
                    });
                return Err(format!(
                    "{} came, {} went; frame {number} is not among what went: {}",
                    came.len(),
                    went.len(),
                    similar.map_or("nothing is left over".to_owned(), |other| {
                        format!("most similar is {}", apart(*frame, other))
                    })
                ));
            }
        }
    }
    if went.len() > came.len() {
        return Err(format!("{} came, {} went", came.len(), went.len()));
    }
    let (came, went) = (by_flow(&came), by_flow(&went));
    for (flow, frames) in &came {
        let other = went.get(flow).map_or(&[][..], Vec::as_slice);
        if let Some(at) = frames.iter().zip(other).position(|(a, b)| a != b) {
            let number = arrivals.iter().position(|a| a.frame == frames[at]);
            return Err(format!(
                "frames of {flow:02x?} are not in order: number {at} of them, frame {number:?}, {}",
                apart((0, frames[at]), (0, other[at]))
            ));
        }
        if frames.len() != other.len() {
            return Err(format!("frames of {flow:02x?} are not all there"));
        }
    }
    Ok(())
}

/// Whether the order of all units is one that a driver can see.
pub fn is_of_one_queue(units: &[Unit]) -> bool {
    units.windows(2).all(|pair| pair[0].queue == pair[1].queue)
}

/// Where two frames with their queues differ.
fn apart(wanted: (u16, &[u8]), found: (u16, &[u8])) -> String {
    let at = wanted.1.iter().zip(found.1).position(|(a, b)| a != b);
    let head = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(96)]);
    format!(
        "queues {} and {}, {} and {} bytes, first different byte {at:?}:\n{}\n{}",
        wanted.0,
        found.0,
        wanted.1.len(),
        found.1.len(),
        head(wanted.1),
        head(found.1)
    )
}

/// That the units of each queue are those that are wanted, in order: header, frame, count. The
/// cause is not looked at.
///
/// # Errors
/// With the first unit that differs, and the frames of the wire that it should be of.
pub fn units(wanted: &[Unit], found: &[Unit], arrivals: &[Arrival]) -> Result<(), String> {
    let queues: BTreeSet<u16> = wanted.iter().chain(found).map(|u| u.queue).collect();
    for queue in queues {
        let of = |units| -> Vec<&Unit> {
            let units: &[Unit] = units;
            units.iter().filter(|u| u.queue == queue).collect()
        };
        let (wanted, found) = (of(wanted), of(found));
        for (number, want) in wanted.iter().enumerate() {
            let from = |unit: &Unit| {
                let frames = resegment(&unit.header, &unit.frame).unwrap_or_default();
                let numbers = frames
                    .iter()
                    .map(|frame| arrivals.iter().position(|a| a.frame == *frame));
                let numbers: Vec<_> = numbers.map(|n| n.map_or(-1, |n| n as isize)).collect();
                format!("{} frames of the wire {numbers:?}", frames.len())
            };
            let what = format!(
                "queue {queue}, unit {number} of {}, which is of {}, closed by {:?}",
                wanted.len(),
                from(want),
                want.cause
            );
            let Some(got) = found.get(number) else {
                return Err(format!("{what}, is not there"));
            };
            if got.frame != want.frame || got.segments != want.segments {
                return Err(format!(
                    "{what}, is instead of {}; {}",
                    from(got),
                    apart((queue, &want.frame), (queue, &got.frame))
                ));
            }
            if got.header != want.header {
                return Err(format!(
                    "{what}, has {:?} instead of {:?}",
                    got.header, want.header
                ));
            }
        }
        if let Some(more) = found.get(wanted.len()) {
            return Err(format!("queue {queue}: one unit too many, {more:02x?}"));
        }
    }
    Ok(())
}

type Flows<'a> = BTreeMap<(Option<u16>, Kin), Vec<&'a [u8]>>;

/// The frames of each flow, whatever the queue, with those between its addresses; and those of each
/// flow in each queue, with those of the queue that cannot be trusted.
fn by_flow<'a>(frames: &[(u16, &'a [u8])]) -> Flows<'a> {
    let kins: Vec<Kin> = frames.iter().map(|(_, frame)| kin(frame)).collect();
    let mut flows: Flows = BTreeMap::new();
    for ((queue, _), kin) in frames.iter().zip(&kins) {
        if let Kin::Flow(..) = kin {
            flows.entry((None, kin.clone())).or_default();
            flows.entry((Some(*queue), kin.clone())).or_default();
        }
    }
    for ((queue, frame), kin) in frames.iter().zip(&kins) {
        match kin {
            Kin::Flow(..) => {
                for queue in [None, Some(*queue)] {
                    flows.entry((queue, kin.clone())).or_default().push(frame);
                }
            }
            Kin::Stranger => {}
            Kin::Addresses(_) | Kin::Queue => {
                for ((of, flow), list) in &mut flows {
                    let Kin::Flow(addresses, _) = flow else {
                        continue;
                    };
                    let with = match kin {
                        Kin::Addresses(own) => of.is_none() && own == addresses,
                        _ => *of == Some(*queue),
                    };
                    if with {
                        list.push(frame);
                    }
                }
            }
        }
    }
    flows
}
