//! `ferronic send`

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use clap::Args;
use ferronic::spec::net::{MAX_FRAME, MIN_FRAME};
use ferronic::xps::{Cpus, Flow, Lane, Sent, Xps, current_cpu};
use ferronic::{CompletionPolicy, Device, QueuePair, TxOffload, TxPart};

use crate::control::{Control, Owner};
use crate::error::{CliError, Outcome};
use crate::files::{Input, Record};
use crate::options::{QueueOptions, Stop};
use crate::progress::Progress;

/// Longest wait for an interrupt: signals and progress are looked at in between.
const WAIT: Duration = Duration::from_millis(50);

/// What the driver's timers count from.
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Options of `send`.
#[derive(Args)]
pub struct Send {
    #[command(flatten)]
    queues: QueueOptions,
    /// The pcap file whose frames to send.
    #[arg(long, value_name = "FILE")]
    read: PathBuf,
    /// Cut frames into this many pieces, each with its own descriptor; 0 sends them in one.
    #[arg(long, default_value_t = 0, value_name = "N",
          value_parser = clap::value_parser!(u16).range(0..=16))]
    pieces: u16,
    /// How the driver learns that frames were sent: ring-empty, ring-empty-holdoff, event-idx,
    /// coalesced, marker, timer, orphan, orphan-half; by default ring-empty-holdoff, or event-idx on a
    /// card without the ring-empty interrupt.
    #[arg(long, value_name = "POLICY")]
    completion: Option<CompletionPolicy>,
    /// Give up when nothing was completed for this long.
    #[arg(long, default_value_t = 30_000, value_name = "MS")]
    timeout_ms: u64,
}

/// Frames that were left out, by reason.
#[derive(Default)]
struct Left {
    short: u64,
    long: u64,
    cut: u64,
}

/// Flows that are kept for being on a queue; those of which nothing is in flight are let go of first.
const FLOWS: usize = 65_536;

/// The card, and how frames are spread over its transmit queues.
struct Sender<'a> {
    device: &'a Device,
    lanes: Vec<Lane>,
    xps: Xps,
    flows: HashMap<u32, Flow>,
    progress: Progress,
    timeout: Duration,
}

impl Send {
    pub fn run(&self) -> Result<Outcome, CliError> {
        let mut input = Input::open(&self.read)?;
        let stop = Stop::catch()?;
        let (device, mut pairs) = self.queues.open_to_send()?;
        self.choose(&device, &mut pairs)?;
        let count = device.queue_pairs();
        let mut sender = Sender {
            device: &device,
            lanes: pairs.into_iter().map(|pair| Lane::new(pair.tx)).collect(),
            xps: Xps::new(count, count, Cpus::of_this_machine()?)?,
            flows: HashMap::new(),
            progress: Progress::new("sent"),
            timeout: Duration::from_millis(self.timeout_ms),
        };
        let control = Control::offer(self.queues.device(), "send");
        let mut left = Left::default();
        let sent = self.send(&mut sender, &mut input, &control, &stop, &mut left);
        // What was read before an error is sent, not lost.
        let drained = sender.drain(0..count).and_then(|()| Ok(device.linger()?));
        drop(control);
        sender.progress.finish();
        drop(sender);
        sent.and(drained)?;
        device.close()?;
        left.report(&self.read)
    }

    /// Sets the completion policy, and says which it is unless that goes without saying.
    fn choose(&self, device: &Device, pairs: &mut [QueuePair]) -> Result<(), CliError> {
        let policy = self
            .completion
            .unwrap_or_else(|| device.default_completion());
        for pair in pairs {
            device.set_completion(&mut pair.tx, policy)?;
        }
        if self.completion.is_some() {
            eprintln!("completion: {policy}");
        } else if policy != CompletionPolicy::DEFAULT {
            let wanted = CompletionPolicy::DEFAULT;
            eprintln!("completion: {policy}, because the card cannot {wanted}");
        }
        Ok(())
    }

    fn send(
        &self,
        sender: &mut Sender<'_>,
        input: &mut Input,
        control: &Control,
        stop: &Stop,
        left: &mut Left,
    ) -> Result<(), CliError> {
        while !stop.requested() {
            control.serve(sender);
            let Some(record) = input.next()? else {
                return Ok(());
            };
            if !left.admits(&record) {
                continue;
            }
            sender.send(&record.data, self.pieces, control)?;
            sender.progress.frame(record.data.len());
            sender.progress.tick();
        }
        Err(CliError::Incomplete("stopped by a signal".into()))
    }
}

impl Sender<'_> {
    /// Sends a frame by the queue that steering says, or by that of its flow if something of it is in
    /// flight.
    fn send(&mut self, frame: &[u8], pieces: u16, control: &Control) -> Result<(), CliError> {
        let hash = flow(frame);
        if self.flows.len() >= FLOWS && !self.flows.contains_key(&hash) {
            self.flows.retain(|_, flow| flow.in_flight() > 0);
        }
        let of = self.flows.entry(hash).or_insert_with(|| Flow::new(hash));
        let cpu = current_cpu().unwrap_or(u32::MAX);
        let (pick, mut flight) = of.send(&self.xps.view(), cpu, 0);
        loop {
            let lane = &mut self.lanes[usize::from(pick.queue)];
            let sent = if pieces == 0 {
                lane.send(flight, &[TxPart::Bytes(frame)], TxOffload::None)?
            } else {
                let size = frame.len().div_ceil(usize::from(pieces));
                let pieces: Vec<_> = frame.chunks(size).collect();
                lane.send_pieces(flight, &pieces)?
            };
            match sent {
                Sent::Queued => return Ok(()),
                Sent::Full(back) => flight = back,
            }
            self.wait(pick.queue, Some(control))?;
        }
    }

    /// Waits until a frame of a queue has completed; settings are served meanwhile.
    fn wait(&mut self, queue: u16, control: Option<&Control>) -> Result<(), CliError> {
        let start = Instant::now();
        let timeout = self.timeout;
        if !self.lanes[usize::from(queue)].queue_mut().stop()? {
            return Ok(());
        }
        loop {
            if let Some(control) = control {
                control.serve(self);
            }
            let lane = &mut self.lanes[usize::from(queue)];
            // A policy without interrupts has a timer; one that stopped has both.
            let now = BEGIN.elapsed();
            let due = lane.queue_mut().tick(now)?;
            let left = due.map_or(WAIT, |due| due.saturating_sub(now));
            self.device.wait(left.min(WAIT))?;
            self.progress.tick();
            if lane.service()? > 0 {
                return Ok(());
            }
            if start.elapsed() > timeout {
                return Err(CliError::Incomplete(format!(
                    "queue {queue} completed nothing for {timeout:?}; is the link up, and does \
                     the wire take frames?"
                )));
            }
        }
    }

    /// Waits until nothing is outstanding on these queues.
    fn drain(&mut self, queues: Range<u16>) -> Result<(), CliError> {
        for queue in queues {
            while self.lanes[usize::from(queue)].queue().outstanding() > 0 {
                self.wait(queue, None)?;
            }
        }
        Ok(())
    }
}

impl Owner for Sender<'_> {
    fn device(&self) -> &Device {
        self.device
    }

    fn transmitting(&self) -> u16 {
        self.xps.queues()
    }

    fn xps(&self) -> Option<&Xps> {
        Some(&self.xps)
    }

    /// First the choice is limited; what the queues that go still hold is sent before they are taken
    /// out of the maps.
    fn set_queues(&mut self, pairs: u16) -> Result<(), CliError> {
        self.device.set_receiving_pairs(pairs)?;
        let mut gone = 0..0;
        self.xps.set_queues(pairs, |dead| gone = dead)?;
        self.drain(gone)
    }
}

impl Left {
    fn admits(&mut self, record: &Record) -> bool {
        let (len, number) = (record.data.len(), record.number);
        let counter = match len {
            _ if len < record.original as usize => &mut self.cut,
            0..MIN_FRAME => &mut self.short,
            MIN_FRAME..=MAX_FRAME => return true,
            _ => &mut self.long,
        };
        *counter += 1;
        log::warn!(
            "record {number}: {len} bytes of {} are not sent",
            record.original
        );
        false
    }

    fn report(&self, path: &std::path::Path) -> Result<Outcome, CliError> {
        let Self { short, long, cut } = self;
        if short + long + cut == 0 {
            return Ok(Outcome::Done);
        }
        Err(CliError::Incomplete(format!(
            "{}: the frames that can be sent were sent; left out were {short} shorter than \
             {MIN_FRAME} bytes, {long} longer than {MAX_FRAME}, {cut} not captured whole \
             (RUST_LOG=warn names them)",
            path.display()
        )))
    }
}

/// A number that frames of one flow share, spread over all 32 bits: frames of a flow stay in order.
fn flow(frame: &[u8]) -> u32 {
    let key = match frame.get(12..14) {
        Some([0x08, 0x00]) => frame.get(26..34),
        Some([0x86, 0xdd]) => frame.get(22..54),
        _ => frame.get(..12),
    };
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = key.unwrap_or(&[]).iter().fold(0x811c_9dc5, mix);
    // The highest bits choose the queue, and those of FNV say little of the last bytes.
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_of_two_packets_of_a_connection_is_equal() {
        let mut a = vec![0; 60];
        a[12..14].copy_from_slice(&[8, 0]);
        a[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let mut b = a.clone();
        b[18] = 7; // another IP ID
        assert_eq!(flow(&a), flow(&b));
        b[33] = 3;
        assert_ne!(flow(&a), flow(&b));
    }

    #[test]
    fn admits_counts_each_reason() {
        let record = |len: usize, original| Record {
            data: vec![0; len],
            original,
            number: 1,
        };
        let mut left = Left::default();
        assert!(left.admits(&record(MIN_FRAME, 14)));
        assert!(left.admits(&record(MAX_FRAME, 9216)));
        assert!(!left.admits(&record(13, 13)));
        assert!(!left.admits(&record(9217, 9217)));
        assert!(!left.admits(&record(60, 61)));
        assert_eq!((left.short, left.long, left.cut), (1, 1, 1));
        assert!(left.report(std::path::Path::new("x")).is_err());
    }
}
