//! The workloads of the thread that asked for the ring-empty interrupt.

use std::collections::VecDeque;

use ferronic::completion::{Push, SenderId};
use ferronic::{Error, TxOffload};

use super::host::{Conditions, Host};
use super::outcome::Outcome;
use super::peer::{Kind, frame};
use crate::tso;

/// Send buffer that a socket has by default.
const BUDGET: usize = 212_992;
/// That of the pings with preload: about half of what they have on the way.
pub const SMALL_BUDGET: usize = 65_536;
/// That of each of the senders that are compared: twelve datagrams, so that those of 20 senders fit into
/// the ring.
const FAIR_BUDGET: usize = 12 * DATAGRAM + DATAGRAM / 2;
/// A datagram of 1 KiB with Ethernet, IPv4 and UDP headers.
pub const DATAGRAM: usize = 14 + 20 + 8 + 1024;
/// A ping of 56 bytes.
pub const PING: usize = 14 + 20 + 8 + 56;
/// A ping of 1,000 bytes.
pub const PRELOAD: usize = 14 + 20 + 8 + 1000;
/// A byte over TCP with time stamps.
const PING_PONG: usize = 14 + 20 + 32 + 1;
/// Segments of the frames of the bulk transfer: 64 KB.
const SEGMENTS: usize = 45;
/// Longer than any timer here: 1 s.
const PATIENCE: u64 = 125_000_000;

/// A workload with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// So many bytes by one sender, in frames that the card segments.
    Bulk(u64),
    /// So many requests, each after the answer to the one before.
    Ping(u32),
    /// So many of 1,000 bytes, 120 of them at once.
    Preload(u32),
}

impl Workload {
    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk(_) => "bulk",
            Self::Ping(_) => "ping",
            Self::Preload(_) => "ping-preload",
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When the policy cannot be had.
    pub fn run(self, conditions: &Conditions) -> Result<Outcome, Error> {
        match self {
            Self::Bulk(bytes) => bulk(conditions, bytes),
            Self::Ping(count) => ping(conditions, count),
            Self::Preload(count) => preload(conditions, count),
        }
    }
}

/// Closes senders and waits until all are; the longest that one took.
fn close(host: &mut Host, ids: &[SenderId]) -> u64 {
    let mut open: Vec<_> = ids.iter().map(|id| (*id, host.now())).collect();
    let mut longest = 0;
    open.retain(|(id, since)| {
        let done = host.close(*id);
        if done {
            longest = longest.max(host.now() - since);
        }
        !done
    });
    let limit = host.now() + PATIENCE;
    loop {
        while let Some(id) = host.port.next_closed() {
            if let Some(at) = open.iter().position(|(other, _)| *other == id) {
                longest = longest.max(host.now() - open.swap_remove(at).1);
            }
        }
        if open.is_empty() {
            return longest;
        }
        assert!(host.now() < limit, "a sender is never closed");
        host.sleep(limit);
        host.serve();
    }
}

/// One sender moves `bytes`, in frames of 64 KB that the card cuts into segments.
///
/// # Errors
/// When the policy cannot be had.
///
/// # Panics
/// When something is lost.
pub fn bulk(conditions: &Conditions, bytes: u64) -> Result<Outcome, Error> {
    let mut host = Host::open(conditions)?;
    let id = host.port.open(BUDGET);
    let whole = tso::frame(tso::frame_of(SEGMENTS));
    let payload = (SEGMENTS * usize::from(tso::GSO_SIZE)) as u64;
    let (start, mut left, mut runnable) = (host.now(), bytes, true);
    let limit = start + 100 * PATIENCE;
    while left > 0 {
        host.serve();
        runnable |= host.wake().is_some();
        if runnable {
            let some = left.min(payload);
            let mut bytes = whole[..whole.len() - (payload - some) as usize].to_vec();
            let len = bytes.len();
            bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
            let headers = &mut bytes[..tso::HEADERS];
            let offload = TxOffload::segment(headers, len, tso::GSO_SIZE).expect("TCP");
            match host.send(id, &bytes, offload) {
                Push::Queued => left -= some,
                _ => runnable = false,
            }
        } else {
            host.sleep(limit);
        }
        assert!(host.now() < limit, "the sender waits for ever");
    }
    let closing = close(&mut host, &[id]);
    assert!(host.settle(PATIENCE), "frames are never completed");
    // What the card has read is still on its way.
    let patience = host.now() + PATIENCE;
    while host.peer.bulk() < bytes && host.now() < patience {
        host.sleep(host.now() + 1000);
        host.serve();
    }
    assert_eq!(host.peer.bulk(), bytes, "bytes that left");
    let end = host.peer.last();
    Ok(Outcome::of(host, end - start, closing))
}

/// `count` requests of `len` bytes, `window` of them at once.
fn requests(
    conditions: &Conditions,
    count: u32,
    len: usize,
    window: u32,
    budget: usize,
) -> Result<Outcome, Error> {
    let mut host = Host::open(conditions)?;
    let id = host.port.open(budget);
    let start = host.now();
    let (mut sent, mut answered, mut blocked) = (0, 0, false);
    let limit = start + 100 * PATIENCE;
    while answered < count {
        host.serve();
        if !host.answers.is_empty() {
            answered += host.answers.drain(..).count() as u32;
            host.woken();
        }
        blocked &= host.wake().is_none();
        if !blocked && sent < count && sent < answered + window {
            let bytes = frame(Kind::Request, 0, sent, len);
            match host.send(id, &bytes, TxOffload::None) {
                Push::Queued => sent += 1,
                _ => blocked = true,
            }
        } else if answered < count {
            host.sleep(limit);
        }
        assert!(host.now() < limit, "{answered} of {count} were answered");
    }
    let simulated = host.now() - start;
    let closing = close(&mut host, &[id]);
    assert!(host.settle(PATIENCE), "frames are never completed");
    Ok(Outcome::of(host, simulated, closing))
}

/// `count` pings of 56 bytes, each after the answer to the one before.
///
/// # Errors
/// When the policy cannot be had.
///
/// # Panics
/// When something is lost.
pub fn ping(conditions: &Conditions, count: u32) -> Result<Outcome, Error> {
    requests(conditions, count, PING, 1, BUDGET)
}

/// `count` pings of 1,000 bytes, 120 of them at once, with a send buffer that holds half of these.
///
/// # Errors
/// When the policy cannot be had.
///
/// # Panics
/// When something is lost.
pub fn preload(conditions: &Conditions, count: u32) -> Result<Outcome, Error> {
    requests(conditions, count, PRELOAD, 120, SMALL_BUDGET)
}

/// Who of those that can run is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By turns.
    Fair,
    /// Always the first in the list, the ping-pong last.
    Adversarial,
}

impl Order {
    /// Its name in figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Adversarial => "adversarial",
        }
    }
}

/// `senders` send datagrams of 1 KiB as fast as they may, beside one that sends a byte and waits for its
/// answer, for so many cycles.
///
/// # Errors
/// When the policy cannot be had.
///
/// # Panics
/// When a sender cannot be closed.
pub fn fairness(
    conditions: &Conditions,
    senders: u16,
    order: Order,
    cycles: u64,
) -> Result<Outcome, Error> {
    let mut host = Host::open(conditions)?;
    let budget = conditions.send_buffer.unwrap_or(FAIR_BUDGET);
    let ids: Vec<_> = (0..=senders).map(|_| host.port.open(budget)).collect();
    let start = host.now();
    let end = start + cycles;
    let last = usize::from(senders);
    // The last is the ping-pong.
    let mut runnable = vec![true; ids.len()];
    let mut turns: VecDeque<usize> = (0..ids.len()).collect();
    let (mut number, mut rounds) = (0, 0);
    while host.now() < end {
        host.serve();
        while let Some(id) = host.wake() {
            if let Some(at) = ids.iter().position(|other| *other == id) {
                runnable[at] = true;
            }
        }
        if !host.answers.is_empty() {
            rounds += host.answers.drain(..).count() as u64;
            host.woken();
            runnable[last] = true;
        }
        let Some(at) = turns.iter().position(|sender| runnable[*sender]) else {
            host.sleep(end);
            continue;
        };
        let sender = turns[at];
        if order == Order::Fair {
            turns.rotate_left(at + 1);
        }
        number += 1;
        let (kind, len) = if sender == last {
            (Kind::Request, PING_PONG)
        } else {
            (Kind::Datagram, DATAGRAM)
        };
        let bytes = frame(kind, sender as u16, number, len);
        let push = host.send(ids[sender], &bytes, TxOffload::None);
        runnable[sender] = push == Push::Queued && sender != last;
    }
    let shares = (0..senders).map(|sender| host.peer.bytes(sender)).collect();
    let packets = host.peer.packets();
    let mut outcome = {
        let cycles = host.now() - start;
        let interrupts = (host.tx_interrupts, host.rx_interrupts, host.cycles);
        let closing = close(&mut host, &ids);
        assert!(host.settle(PATIENCE), "frames are never completed");
        let mut outcome = Outcome::of(host, cycles, closing);
        (
            outcome.interrupts,
            outcome.rx_interrupts,
            outcome.host_cycles,
        ) = interrupts;
        outcome
    };
    outcome.packets = packets;
    outcome.shares = shares;
    outcome.rounds = rounds;
    Ok(outcome)
}
