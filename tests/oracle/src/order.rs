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

/// That the units of each queue are those that are wanted, in order: header, frame, count. Those that
/// are closed at one time for one cause may come in any order. Returns those that were found in the
/// order in which they are wanted, queue by queue, with their causes.
///
/// # Errors
/// With the first unit that differs, and the frames of the wire that it should be of.
pub fn units(wanted: &[Unit], found: &[Unit], arrivals: &[Arrival]) -> Result<Vec<Unit>, String> {
    let queues: BTreeSet<u16> = wanted.iter().chain(found).map(|u| u.queue).collect();
    let mut ordered = Vec::new();
    for queue in queues {
        let of = |units: &[Unit]| -> Vec<Unit> {
            let units = units.iter().filter(|unit| unit.queue == queue);
            units.cloned().collect()
        };
        let (wanted, mut found) = (of(wanted), of(found));
        for (number, want) in wanted.iter().enumerate() {
            let what = || {
                format!(
                    "queue {queue}, unit {number} of {}, which is of {}, closed by {:?}",
                    wanted.len(),
                    made_of(want, arrivals),
                    want.cause
                )
            };
            let together = wanted[number..].iter();
            let together = together
                .take_while(|unit| (unit.at, unit.cause) == (want.at, want.cause))
                .count();
            let together = if want.cause.is_some() { together } else { 1 };
            let end = found.len().min(number + together);
            let is = |got: &Unit| got.frame == want.frame && got.segments == want.segments;
            match found
                .get(number..end)
                .and_then(|some| some.iter().position(is))
            {
                Some(at) => found[number..=number + at].rotate_right(1),
                None if number >= found.len() => return Err(format!("{}, is not there", what())),
                None => {}
            }
            let got = &mut found[number];
            if !is(got) {
                return Err(format!(
                    "{}, is instead of {}; {}",
                    what(),
                    made_of(got, arrivals),
                    apart((queue, &want.frame), (queue, &got.frame))
                ));
            }
            if got.header != want.header {
                let (got, want) = (got.header, want.header);
                return Err(format!("{}, has {got:?} instead of {want:?}", what()));
            }
            got.cause = want.cause;
        }
        if let Some(more) = found.get(wanted.len()) {
            return Err(format!(
                "queue {queue}: one unit too many, of {}",
                made_of(more, arrivals)
            ));
        }
        ordered.extend(found);
    }
    Ok(ordered)
}

/// Units as a driver counts their segments, by what they are cut into: where a profile cannot be
/// undone that is another number than what was merged.
pub fn as_cut(mut units: Vec<Unit>) -> Vec<Unit> {
    for unit in &mut units {
        if let Ok(frames) = resegment(&unit.header, &unit.frame) {
            unit.segments = frames.len();
        }
    }
    units
}

/// Which frames of the wire a unit is of, by number; -1 is none.
fn made_of(unit: &Unit, arrivals: &[Arrival]) -> String {
    let frames = resegment(&unit.header, &unit.frame).unwrap_or_default();
    let numbers = frames
        .iter()
        .map(|frame| arrivals.iter().position(|a| a.frame == *frame));
    let numbers: Vec<_> = numbers.map(|n| n.map_or(-1, |n| n as isize)).collect();
    format!("{} frames of the wire {numbers:?}", frames.len())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Header;
    use crate::lro::Cause;

    fn unit(byte: u8, at: u64, cause: Option<Cause>) -> Unit {
        Unit {
            at,
            queue: 0,
            header: Header::default(),
            frame: vec![byte; 60],
            segments: 1,
            cause,
        }
    }

    #[test]
    fn units_of_one_event_come_in_any_order_and_no_others() {
        let stopped = Some(Cause::Stopped);
        let wanted = [
            unit(1, 1, Some(Cause::Gap)),
            unit(2, 5, stopped),
            unit(3, 5, stopped),
            unit(4, 5, stopped),
        ];
        let found = |order: [usize; 4]| order.map(|i| unit(i as u8, 9, None));
        let ordered = units(&wanted, &found([1, 3, 4, 2]), &[]).expect("one event");
        assert!(ordered.iter().map(|u| u.frame[0]).eq([1, 2, 3, 4]));
        assert!(
            ordered
                .iter()
                .map(|u| u.cause)
                .eq(wanted.iter().map(|u| u.cause))
        );
        assert!(units(&wanted, &found([2, 1, 3, 4]), &[]).is_err());
        assert!(units(&wanted, &found([1, 2, 3, 4])[..3], &[]).is_err());
        assert!(units(&wanted[..3], &found([1, 2, 3, 4]), &[]).is_err());
        let apart = [unit(1, 1, None), unit(2, 1, None)];
        assert!(units(&apart, &[unit(2, 1, None), unit(1, 1, None)], &[]).is_err());
        let mut other = found([1, 2, 3, 4]);
        other[2].header.flags = 1;
        assert!(units(&wanted, &other, &[]).is_err());
    }

    #[test]
    fn frame_that_is_lost_doubled_or_moved_is_named() {
        let frames: Vec<Arrival> = (0..3)
            .map(|i| Arrival {
                at: 0,
                queue: 0,
                frame: crate::segment::Segment::v4(100 * i, 100).bytes(),
            })
            .collect();
        let went = |order: &[usize]| -> Vec<(u16, Vec<u8>)> {
            order
                .iter()
                .map(|i| (0, frames[*i].frame.clone()))
                .collect()
        };
        assert_eq!(same(&frames, &went(&[0, 1, 2])), Ok(()));
        for (order, told) in [
            (&[0, 2, 1][..], "not in order"),
            (&[0, 2], "frame 1 is not among"),
            (&[0, 1, 2, 2], "3 came, 4 went"),
            (&[0, 1, 1], "frame 2 is not among"),
        ] {
            let error = same(&frames, &went(order)).expect_err("it differs");
            assert!(error.contains(told), "{error}");
        }
    }
}
