//! A host with one processor: the driver, whose work takes simulated time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ferronic::completion::{Push, SenderId};
use ferronic::pci::PciFunction;
use ferronic::{
    CompletionPolicy, Device, DeviceConfig, Error, RxQueue, TxOffload, TxPart, TxPort, Wakeup,
};
use ferronic_sim::{NS_PER_CYCLE, Sim, SimConfig, SimFunction};

use super::cost::{Cost, HOST_CYCLES};
use super::peer::{Peer, sender_of};

/// Entries of a ring.
pub const RING: u16 = 256;
/// Vectors of the queues of pair 0.
const RECEIVE: u16 = 1;
const TRANSMIT: u16 = 2;

/// What is measured under.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The policy.
    pub policy: CompletionPolicy,
    /// What the host's work costs.
    pub cost: Cost,
    /// Cycles in which the peer answers.
    pub peer: u64,
    /// Bytes of the send buffers of senders that are compared, if not twelve datagrams.
    pub send_buffer: Option<usize>,
}

/// The host, its card and the far end.
pub struct Host {
    /// The simulated card.
    pub function: SimFunction,
    /// The driver's device.
    pub device: Device,
    /// Its transmit queue, under the policy.
    pub port: TxPort,
    rx: RxQueue,
    /// The far end.
    pub peer: Peer,
    cost: Cost,
    /// Cycles of the host that it worked, and those of them that no cycle of the card was run for yet.
    pub cycles: u64,
    debt: u64,
    /// When each frame that is completed was, as far as it was not taken back.
    completed: VecDeque<u64>,
    /// From the completion of each frame until it was taken back, in cycles.
    pub delays: Vec<u64>,
    /// Interrupts by queue.
    pub tx_interrupts: u64,
    /// Interrupts of the receive queue.
    pub rx_interrupts: u64,
    /// Runs of the driver's timer.
    pub timers: u64,
    due: Option<Duration>,
    /// Senders of frames that came back.
    pub answers: VecDeque<u16>,
}

impl Host {
    /// Opens the card.
    ///
    /// # Errors
    /// When the policy cannot be had on this card.
    ///
    /// # Panics
    /// When the card cannot be opened at all.
    pub fn open(conditions: &Conditions) -> Result<Self, Error> {
        Self::with(conditions, SimConfig::default())
    }

    /// Opens a card of a given configuration.
    ///
    /// # Errors
    /// As [`Host::open`].
    ///
    /// # Panics
    /// Likewise.
    pub fn with(conditions: &Conditions, sim: SimConfig) -> Result<Self, Error> {
        let (peer, wire) = Peer::new(conditions.peer);
        let sim = Sim::with_wire(sim, wire).expect("the model starts");
        let function = SimFunction::new(sim).expect("the card enumerates");
        let seam: Arc<dyn PciFunction> = Arc::new(function.clone());
        let config = DeviceConfig {
            wakeup: Wakeup::Interrupt,
            ring_size: Some(RING),
            ..DeviceConfig::default()
        };
        let (device, mut pairs) = Device::open(seam, config)?;
        let pair = pairs.remove(0);
        let (mut rx, mut tx) = (pair.rx, pair.tx);
        device.set_completion(&mut tx, conditions.policy)?;
        rx.arm()?;
        // Until the card has what it needs to begin.
        function.run(20_000).expect("the card runs");
        while function.sim().take_vector().is_some() {}
        Ok(Self {
            function,
            device,
            port: TxPort::new(tx),
            rx,
            peer,
            cost: conditions.cost,
            cycles: 0,
            debt: 0,
            completed: VecDeque::new(),
            delays: Vec::new(),
            tx_interrupts: 0,
            rx_interrupts: 0,
            timers: 0,
            due: None,
            answers: VecDeque::new(),
        })
    }

    /// The card's time base.
    pub fn now(&self) -> u64 {
        self.function.now()
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.now() * NS_PER_CYCLE)
    }

    /// Lets the card run so many cycles, or until there is an interrupt, and notes what completes.
    fn run(&mut self, cycles: u64, stop_at_interrupt: bool) {
        let (port, completed) = (&self.port, &mut self.completed);
        let done = |sim: &mut Sim| {
            note(port, completed, sim.now());
            stop_at_interrupt && sim.root.has_message()
        };
        let ran = self.function.sim().run_until(cycles, done);
        ran.expect("the card runs");
    }

    /// The host works.
    fn spend(&mut self, cycles: u64) {
        self.cycles += cycles;
        self.debt += cycles;
        let run = self.debt / HOST_CYCLES;
        self.debt %= HOST_CYCLES;
        self.run(run, false);
    }

    /// The driver does something that may take frames back; they are when that work is done.
    fn driver<T>(&mut self, action: impl FnOnce(&mut TxPort) -> Result<T, Error>) -> T {
        note(&self.port, &mut self.completed, self.function.now());
        let before = self.port.queue().stats().completed;
        let result = action(&mut self.port).expect("the card behaves");
        let count = self.port.queue().stats().completed - before;
        self.spend(count * self.cost.reclaim);
        let now = self.now();
        for _ in 0..count {
            let at = self.completed.pop_front().unwrap_or(now);
            self.delays.push(now - at);
        }
        result
    }

    /// A call of a sender. One that has to wait costs when it goes on.
    pub fn send(&mut self, id: SenderId, frame: &[u8], offload: TxOffload) -> Push {
        let push = self.driver(|port| {
            let push = port.send(id, &[TxPart::Bytes(frame)], offload)?;
            port.flush()?;
            Ok(push)
        });
        if push == Push::Queued {
            self.spend(self.cost.call(frame.len()));
        }
        self.tick();
        push
    }

    /// Closes a sender; true if that is done.
    pub fn close(&mut self, id: SenderId) -> bool {
        self.driver(|port| port.close(id))
    }

    fn tick(&mut self) {
        let now = self.time();
        if self.due.is_some_and(|due| due <= now) {
            self.timers += 1;
            self.spend(self.cost.interrupt);
        }
        let now = self.time();
        self.due = self.driver(|port| port.tick(now));
    }

    /// Does what interrupts and the timer ask for.
    pub fn serve(&mut self) {
        self.tick();
        loop {
            let vector = self.function.sim().take_vector();
            let Some(vector) = vector else { break };
            self.spend(self.cost.interrupt);
            match vector {
                RECEIVE => {
                    self.rx_interrupts += 1;
                    self.receive();
                }
                TRANSMIT => {
                    self.tx_interrupts += 1;
                    self.driver(TxPort::service);
                }
                other => panic!("vector {other} is of no queue here"),
            }
        }
    }

    fn receive(&mut self) {
        let (rx, answers) = (&mut self.rx, &mut self.answers);
        loop {
            let mut bytes = Vec::new();
            let count = rx.receive(64, |frame| {
                bytes.clear();
                frame.copy_to(&mut bytes);
                answers.extend(sender_of(&bytes));
            });
            let none = count.expect("the card behaves") == 0;
            if none && !rx.arm().expect("the card behaves") {
                break;
            }
        }
    }

    /// The next sender that may go on; to wake it costs.
    pub fn wake(&mut self) -> Option<SenderId> {
        let id = self.port.next_ready()?;
        self.spend(self.cost.wakeup);
        Some(id)
    }

    /// Counts a wake-up for another cause.
    pub fn woken(&mut self) {
        self.spend(self.cost.wakeup);
    }

    /// Sleeps until an interrupt, the timer or `until`.
    pub fn sleep(&mut self, until: u64) {
        let due = self.due.map_or(u64::MAX, |due| {
            (due.as_nanos() as u64).div_ceil(NS_PER_CYCLE)
        });
        let cycles = until.min(due).saturating_sub(self.now());
        self.run(cycles, true);
    }

    /// Lets time pass until everything was taken back; false if it was not within `cycles`.
    pub fn settle(&mut self, cycles: u64) -> bool {
        let limit = self.now() + cycles;
        self.serve();
        while self.port.queue().outstanding() > 0 {
            if self.now() >= limit {
                return false;
            }
            self.sleep(limit);
            self.serve();
        }
        true
    }
}

/// Notes when frames are completed, that is shown to be in host memory.
fn note(port: &TxPort, completed: &mut VecDeque<u64>, now: u64) {
    let used = usize::from(port.queue().peek_completed());
    while completed.len() < used {
        completed.push_back(now);
    }
}
