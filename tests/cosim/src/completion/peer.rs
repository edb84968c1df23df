//! The far end of the wire: counts what comes, and answers what asks for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ferronic_sim::wire::{Pace, RxFrame, Wire};

/// EtherType of what is not TCP here: "local experimental 1".
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
/// Headers of a frame of the bulk transfer.
const TCP_HEADERS: usize = 66;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is taken.
    Datagram,
    /// It is sent back.
    Request,
}

/// A frame of `len` bytes of a sender; `number` tells it from others.
pub fn frame(kind: Kind, sender: u16, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    bytes.extend(EXPERIMENTAL);
    bytes.push(u8::from(kind == Kind::Request));
    bytes.extend(sender.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend((bytes.len()..len).map(|i| (i as u32).wrapping_mul(number | 1) as u8));
    bytes
}

/// The sender of a frame that came back.
pub fn sender_of(frame: &[u8]) -> Option<u16> {
    (frame.get(12..14)? == EXPERIMENTAL).then_some(())?;
    Some(u16::from_be_bytes(*frame.get(15..)?.first_chunk()?))
}

/// What came.
#[derive(Debug, Default)]
struct Shared {
    answers: VecDeque<(u64, Vec<u8>)>,
    delay: u64,
    packets: u64,
    /// When the last came.
    last: u64,
    /// Payload of the bulk transfer.
    bulk: u64,
    /// Bytes of frames by sender.
    bytes: BTreeMap<u16, u64>,
    /// All frames, if they are to be kept.
    kept: Option<Vec<Vec<u8>>>,
}

/// The end that the host's side of a measurement looks at.
#[derive(Clone, Debug, Default)]
pub struct Peer(Arc<Mutex<Shared>>);

/// The end that the simulator holds.
#[derive(Debug)]
pub struct PeerWire(Peer);

impl Peer {
    /// A peer that answers `delay` cycles after a request has come.
    pub fn new(delay: u64) -> (Self, Box<PeerWire>) {
        let peer = Self::default();
        peer.lock().delay = delay;
        (peer.clone(), Box::new(PeerWire(peer)))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames that came.
    pub fn packets(&self) -> u64 {
        self.lock().packets
    }

    /// When the last of them did.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Bytes of payload of the bulk transfer.
    pub fn bulk(&self) -> u64 {
        self.lock().bulk
    }

    /// Bytes of frames of a sender.
    pub fn bytes(&self, sender: u16) -> u64 {
        self.lock().bytes.get(&sender).copied().unwrap_or(0)
    }

    /// Keeps all frames from now on.
    pub fn keep(&self) {
        self.lock().kept = Some(Vec::new());
    }

    /// The frames that were kept.
    pub fn take_kept(&self) -> Vec<Vec<u8>> {
        self.lock().kept.replace(Vec::new()).unwrap_or_default()
    }
}

impl Wire for PeerWire {
    fn next_frame(&mut self, now: u64) -> Option<RxFrame> {
        let mut shared = self.0.lock();
        if shared.answers.front()?.0 > now {
            return None;
        }
        let (_, data) = shared.answers.pop_front()?;
        Some(RxFrame { data, abort: false })
    }

    fn next_event(&self, now: u64) -> Option<u64> {
        let shared = self.0.lock();
        shared.answers.front().map(|(time, _)| *time.max(&now))
    }

    fn sent(&mut self, now: u64, frame: &[u8], aborted: bool) {
        if aborted {
            // A reset card ends what it is about to send; what is missing shows.
            return;
        }
        let mut shared = self.0.lock();
        (shared.packets, shared.last) = (shared.packets + 1, now);
        match sender_of(frame) {
            Some(sender) => {
                *shared.bytes.entry(sender).or_default() += frame.len() as u64;
                if frame[14] == 1 {
                    let due = now + shared.delay;
                    shared.answers.push_back((due, frame.to_vec()));
                }
            }
            None => shared.bulk += (frame.len() - TCP_HEADERS) as u64,
        }
        if let Some(kept) = &mut shared.kept {
            kept.push(frame.to_vec());
        }
    }

    fn pace(&self) -> Pace {
        Pace::Gigabit
    }
}
