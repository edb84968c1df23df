//! What arrives: synthetic bulk transfers, and captured ones.

use std::collections::BTreeMap;

use ferronic_cosim_tests::Capture;
use ferronic_oracle::stream::Bulk;
use ferronic_oracle::vectors::Arrival;
use ferronic_sim::wire::Pace;

/// Of the flows of a capture, those with less than this part of the largest carry no bulk.
const SMALL: usize = 10;

/// A stream and how fast it comes.
#[derive(Clone)]
pub struct Stream {
    /// `synthetic`, or the file that it was captured in.
    pub name: String,
    /// How many connections at once.
    pub flows: usize,
    /// With time stamps.
    pub timestamps: bool,
    /// 4 or 6.
    pub ip: u8,
    /// Bytes of the longest IP packet.
    pub mtu: usize,
    /// How fast.
    pub pace: Pace,
    /// Bytes of payload.
    pub payload: usize,
    /// The frames; their times are cycles, as fast as 64 bits take them.
    pub arrivals: Vec<Arrival>,
}

/// A TCP segment with data: the bytes that tell its connection, the direction included, and how many
/// bytes of payload it has.
fn data(frame: &[u8]) -> Option<(&[u8], usize)> {
    let half = |at: usize| usize::from(frame[at]) << 8 | usize::from(frame[at + 1]);
    let (addresses, tcp, end) = match frame.get(12..15)? {
        [0x08, 0x00, 0x45] if frame.len() >= 54 && frame[23] == 6 => (26, 34, 14 + half(16)),
        [0x86, 0xdd, _] if frame.len() >= 74 && frame[20] == 6 => (22, 54, 54 + half(18)),
        _ => return None,
    };
    let payload = end.checked_sub(tcp + usize::from(frame[tcp + 12] >> 4) * 4)?;
    let begins = frame[tcp + 13] & 2 != 0;
    (payload > 0 && !begins).then_some((&frame[addresses..tcp + 4], payload))
}

fn arrivals(frames: impl Iterator<Item = Vec<u8>>) -> Vec<Arrival> {
    let mut at = 0;
    let arrive = |frame: Vec<u8>| {
        at += frame.len().div_ceil(8) as u64;
        let queue = 0;
        Arrival { at, queue, frame }
    };
    frames.map(arrive).collect()
}

impl Stream {
    /// No PSH, constant acknowledgement, window and time stamps: about `bytes` bytes.
    pub fn synthetic(flows: u16, timestamps: bool, v6: bool, mtu: usize, bytes: usize) -> Self {
        let bulk = Bulk {
            flows,
            v6,
            stamps: timestamps,
            mtu,
            segments: bytes.div_ceil(mtu * usize::from(flows)),
            ticks: 1,
            ..Bulk::default()
        };
        let arrivals = bulk.arrivals();
        let payloads = arrivals.iter().filter_map(|arrival| data(&arrival.frame));
        Self {
            name: "synthetic".to_owned(),
            flows: flows.into(),
            timestamps,
            ip: if v6 { 6 } else { 4 },
            mtu,
            pace: Pace::Line,
            payload: payloads.map(|(_, payload)| payload).sum(),
            arrivals,
        }
    }

    /// The same at 1 Gbit/s.
    #[must_use]
    pub fn slow(mut self) -> Self {
        self.pace = Pace::Gigabit;
        let mut at = 0;
        for arrival in &mut self.arrivals {
            at += self.pace.cycles(arrival.frame.len());
            arrival.at = at;
        }
        self
    }

    /// The data of a capture's bulk transfers, in the direction in which they go; none if there are
    /// none.
    pub fn captured(capture: &Capture) -> Option<Self> {
        let mut flows: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (flow, payload) in capture.frames.iter().filter_map(|frame| data(frame)) {
            *flows.entry(flow).or_default() += payload;
        }
        let most = flows.values().copied().max()?;
        flows.retain(|_, bytes| *bytes * SMALL >= most);
        if most < 100_000 {
            return None;
        }
        let (mut payload, mut frames) = (0, Vec::new());
        for frame in &capture.frames {
            if let Some((flow, more)) = data(frame)
                && flows.contains_key(flow)
            {
                payload += more;
                frames.push(frame.clone());
            }
        }
        let first = frames.first()?;
        let v6 = first[12] == 0x86;
        let tcp = if v6 { 54 } else { 34 };
        Some(Self {
            name: capture.name.clone(),
            flows: flows.len(),
            timestamps: first[tcp + 12] >> 4 > 5,
            ip: if v6 { 6 } else { 4 },
            mtu: frames.iter().map(Vec::len).max()? - 14,
            pace: Pace::Line,
            payload,
            arrivals: arrivals(frames.into_iter()),
        })
    }

    /// Everything in a capture.
    pub fn whole(capture: &Capture) -> Vec<Arrival> {
        arrivals(capture.frames.iter().cloned())
    }

    /// How fast, for people and figures.
    pub fn speed(&self) -> &'static str {
        match self.pace {
            Pace::Gigabit => "1G",
            _ => "data path",
        }
    }
}
