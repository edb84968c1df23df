//! Moving frames between a card and a TAP interface.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::time::Duration;

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, HeaderFlags, MAX_FRAME, MAX_SEGMENTED_FRAME, gso};
use zerocopy::FromBytes;

use super::{Tap, TapError};
use crate::device::Wait;
use crate::error::Error;
use crate::offload::{Segmentation, TxOffload};
use crate::queue::{MAX_BURST, PushResult, QueuePair, RxFrame};

/// Longest wait: whoever wants the bridge to stop is asked in between.
const WAIT: Duration = Duration::from_millis(50);

/// What crossed a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeStats {
    /// Frames that the host took, units among them.
    pub to_host: u64,
    /// Their bytes.
    pub to_host_bytes: u64,
    /// Of them, units that the card merged.
    pub units_by_card: u64,
    /// Of them, units that the driver merged.
    pub units_by_driver: u64,
    /// Frames that were dropped because the card said of them what cannot be.
    pub refused: u64,
    /// Frames that the host did not take: its interface is down, or has no room.
    pub not_taken: u64,
    /// Frames of the host's that the card took.
    pub to_card: u64,
    /// Their bytes.
    pub to_card_bytes: u64,
    /// Of them, those that the card was to segment.
    pub segmented: u64,
    /// Of them, those whose checksum the card was to complete, unless it segments them.
    pub checksums: u64,
    /// Frames of the host's that the card cannot send: too short or too long, or with a request
    /// that it does not know.
    pub unsendable: u64,
}

impl BridgeStats {
    /// Of two bridges together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            to_host: self.to_host + other.to_host,
            to_host_bytes: self.to_host_bytes + other.to_host_bytes,
            units_by_card: self.units_by_card + other.units_by_card,
            units_by_driver: self.units_by_driver + other.units_by_driver,
            refused: self.refused + other.refused,
            not_taken: self.not_taken + other.not_taken,
            to_card: self.to_card + other.to_card,
            to_card_bytes: self.to_card_bytes + other.to_card_bytes,
            segmented: self.segmented + other.segmented,
            checksums: self.checksums + other.checksums,
            unsendable: self.unsendable + other.unsendable,
        }
    }
}

/// A card's queue pairs and a TAP interface, joined.
///
/// Frames from every pair go to the interface; what comes from there leaves by the first.
pub struct Bridge<'a> {
    waits: &'a dyn Wait,
    pairs: Vec<QueuePair>,
    tap: Tap,
    /// A frame of the host's with its header, and one byte more: what fills it is too long.
    bytes: Box<[u8]>,
    /// Bytes of the largest frame that the host may give.
    most: usize,
    stats: BridgeStats,
}

impl<'a> Bridge<'a> {
    /// Joins them. For [`Bridge::run`] `waits` is the card, which must have been opened with
    /// [`Wakeup::Interrupt`](crate::Wakeup::Interrupt), or the waiter of the only pair.
    ///
    /// # Errors
    /// [`Error::Setting`] without a queue pair.
    pub fn new(waits: &'a dyn Wait, pairs: Vec<QueuePair>, tap: Tap) -> Result<Self, Error> {
        let Some(first) = pairs.first() else {
            return Err(Error::Setting {
                what: "the number of queue pairs of a bridge",
                value: 0,
                must: "one at least is needed".into(),
            });
        };
        let most = first.tx.max_segmented().unwrap_or(MAX_FRAME).max(MAX_FRAME);
        Ok(Self {
            waits,
            pairs,
            tap,
            bytes: vec![0; HEADER_LEN + MAX_SEGMENTED_FRAME + 1].into_boxed_slice(),
            most,
            stats: BridgeStats::default(),
        })
    }

    /// What crossed so far.
    pub fn stats(&self) -> BridgeStats {
        self.stats
    }

    /// The queue pairs, for their counters.
    pub fn pairs(&self) -> &[QueuePair] {
        &self.pairs
    }

    /// The interface.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Moves frames until `stop` says so.
    ///
    /// # Errors
    /// When card or interface fail. A frame that one of them does not take is counted and dropped.
    pub fn run(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), Error> {
        while !stop() {
            self.step()?;
        }
        Ok(())
    }

    /// Moves what is there now, or waits until there may be something, for 50 ms at most.
    ///
    /// # Errors
    /// As [`Bridge::run`].
    pub fn step(&mut self) -> Result<(), Error> {
        match self.turn()? {
            true => Ok(()),
            false => self.wait(),
        }
    }

    /// Moves what is there now, at most a burst each way; false if there was nothing.
    ///
    /// # Errors
    /// As [`Bridge::run`].
    pub fn turn(&mut self) -> Result<bool, Error> {
        let received = self.take_from_card()?;
        Ok(self.take_from_host()? | received)
    }

    fn take_from_card(&mut self) -> Result<bool, Error> {
        let Self {
            pairs, tap, stats, ..
        } = self;
        let mut some = false;
        for pair in pairs {
            let mut gone = None;
            some |= pair.rx.receive(MAX_BURST, |frame| {
                if let Err(e) = pass(frame, tap, stats) {
                    gone.get_or_insert(e);
                }
            })? > 0;
            if let Some(e) = gone {
                return Err(TapError::Gone(e).into());
            }
        }
        Ok(some)
    }

    fn take_from_host(&mut self) -> Result<bool, Error> {
        let Some(tx) = self.pairs.first_mut().map(|pair| &mut pair.tx) else {
            return Ok(false);
        };
        let mut count = 0;
        while count < MAX_BURST && tx.has_room_for(self.most)? {
            let Some(len) = self.tap.read(&mut self.bytes)? else {
                break;
            };
            count += 1;
            let Some((header, frame)) = parse(&self.bytes[..len]) else {
                self.stats.unsendable += 1;
                continue;
            };
            let pushed = match offload(&header) {
                Some(offload) => tx.push_offload(frame, offload),
                None => {
                    self.stats.unsendable += 1;
                    log::debug!("the host asks for what the card does not know: {header:?}");
                    continue;
                }
            };
            match pushed {
                Ok(PushResult::Queued) => {
                    self.stats.to_card += 1;
                    self.stats.to_card_bytes += frame.len() as u64;
                    let segmented = header.gso_type != gso::NONE;
                    self.stats.segmented += u64::from(segmented);
                    self.stats.checksums += u64::from(!segmented && header.flags != 0);
                }
                Ok(PushResult::Full) => {
                    self.stats.unsendable += 1;
                    log::debug!("a frame of {} bytes found no room", frame.len());
                }
                Err(
                    e @ (Error::FrameLength { .. } | Error::Offload(_) | Error::Segments { .. }),
                ) => {
                    self.stats.unsendable += 1;
                    log::debug!("a frame of the host's was dropped: {e}");
                }
                Err(e) => return Err(e),
            }
        }
        tx.flush()?;
        tx.reap()?;
        Ok(count > 0)
    }

    /// Waits until there may be something to move.
    fn wait(&mut self) -> Result<(), Error> {
        let mut pending = false;
        let mut timeout = WAIT;
        for pair in &mut self.pairs {
            pending |= pair.rx.arm()?;
            if let Some(due) = pair.rx.due() {
                timeout = timeout.min(due);
            }
        }
        let mut room = true;
        if let Some(tx) = self.pairs.first_mut().map(|pair| &mut pair.tx) {
            room = tx.has_room_for(self.most)?;
            if !room {
                pending |= tx.arm_after(tx.outstanding() / 2)?;
            }
        }
        if pending {
            return Ok(());
        }
        if room {
            self.waits.wait_or(self.tap.as_fd(), timeout)?;
        } else {
            self.waits.wait(timeout)?;
        }
        Ok(())
    }
}

/// Passes a frame to the host; an error only if there is no interface any more.
fn pass(frame: &RxFrame<'_>, tap: &Tap, stats: &mut BridgeStats) -> io::Result<()> {
    let header = match frame.host_header() {
        Ok(header) => header,
        Err(why) => {
            stats.refused += 1;
            log::debug!("a received frame was dropped: {why}");
            return Ok(());
        }
    };
    if let Err(e) = frame.write_to(tap, &header) {
        return match (e.raw_os_error(), e.kind()) {
            (Some(libc::EBADFD | libc::ENODEV | libc::EBADF | libc::EPIPE), _) => Err(e),
            (_, ErrorKind::BrokenPipe | ErrorKind::NotConnected) => Err(e),
            // Down, no memory, or a frame that the kernel does not like.
            _ => {
                stats.not_taken += 1;
                log::debug!(
                    "the host did not take a frame of {} bytes: {e}",
                    frame.len()
                );
                Ok(())
            }
        };
    }
    stats.to_host += 1;
    stats.to_host_bytes += frame.len() as u64;
    if frame.is_merged_by_card() {
        stats.units_by_card += 1;
    } else {
        stats.units_by_driver += u64::from(frame.is_unit());
    }
    Ok(())
}

/// The header of a frame of the host's, and the frame.
fn parse(bytes: &[u8]) -> Option<(NetHeader, &[u8])> {
    // With one byte more than the longest, the rest of it is lost.
    if bytes.len() > HEADER_LEN + MAX_SEGMENTED_FRAME {
        return None;
    }
    NetHeader::read_from_prefix(bytes).ok()
}

/// What the host asks for, if the card may know it. The queue compares it with the frame.
fn offload(header: &NetHeader) -> Option<TxOffload> {
    let flags = HeaderFlags::from_bits_retain(header.flags);
    let partial = flags.contains(HeaderFlags::NEEDS_CSUM);
    let kind = match header.gso_type & !gso::ECN {
        gso::NONE if partial => {
            return Some(TxOffload::Checksum {
                start: header.csum_start.get(),
                offset: header.csum_offset.get(),
            });
        }
        gso::NONE => return Some(TxOffload::None),
        gso::TCPV4 => Segmentation::TcpV4,
        gso::TCPV6 => Segmentation::TcpV6,
        gso::UDP_L4 => Segmentation::Udp,
        _ => return None,
    };
    Some(TxOffload::Segment {
        kind,
        size: header.gso_size.get(),
        ecn: header.gso_type & gso::ECN != 0,
    })
}
