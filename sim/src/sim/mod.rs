//! The whole simulation: card, root complex, wire and time.

mod enumerate;
mod error;
mod round_trips;

use std::time::{Duration, Instant};

pub use enumerate::{Bar, FunctionInfo, MsixInfo};
pub use error::SimError;
use round_trips::RoundTrips;

use crate::model::{
    Endpoint, Inputs, ModelError, Outputs, QUEUE_PAIRS, Strap, VerilatedCore, WIDTHS,
};
use crate::rng::Rng;
use crate::root_complex::{RequestTag, RootComplex, RootComplexConfig};
use crate::wire::{NoWire, Wire, WirePort, WireStalls};

/// Nanoseconds a cycle: 125 MHz.
pub const NS_PER_CYCLE: u64 = 8;

/// Clocked cycles without traffic after which the card only waits: more than every wait of the card
/// that it does not announce as a deadline (12,500 cycles for a receive buffer).
const QUIET_CYCLES: u64 = 16_384;

/// Doorbells in the register BAR.
const DOORBELLS: std::ops::Range<u64> = 0x3000..0x4000;

/// Cycles that last `time`, rounded up.
pub fn cycles_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(u128::from(NS_PER_CYCLE))).unwrap_or(u64::MAX)
}

/// Everything that determines a simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Width of the data path in bits; by default the narrowest that was built.
    pub data_w: u32,
    /// Everything random comes from it.
    pub seed: u64,
    /// Straps of the card. `rx_lossless` is overwritten by what the wire wants.
    pub strap: Strap,
    /// The root complex.
    pub root: RootComplexConfig,
    /// Random stalls of the frame streams.
    pub wire_stalls: WireStalls,
    /// Skip cycles in which nothing happens.
    pub idle_skip: bool,
    /// Cycles after which a request to the card counts as lost.
    pub request_timeout: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            data_w: WIDTHS[0],
            seed: 0,
            strap: Strap::default(),
            root: RootComplexConfig::default(),
            wire_stalls: WireStalls::default(),
            idle_skip: true,
            request_timeout: 200_000,
        }
    }
}

impl SimConfig {
    /// Random stalls on every channel, completions split and reordered at random, all by `seed`.
    pub fn adversarial(seed: u64) -> Self {
        let mut config = Self {
            seed,
            ..Self::default()
        };
        config.root.reorder = true;
        config.root.random_split = true;
        config.root.latency_jitter = 200;
        config.root.stalls = crate::root_complex::Stalls {
            posted: 150,
            reads: 150,
            card_completions: 150,
            requests: 150,
            completions: 150,
        };
        config.wire_stalls = WireStalls { rx: 100, tx: 100 };
        config
    }
}

/// How much was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimStats {
    /// Cycles that the model was clocked.
    pub evaluated: u64,
    /// Cycles that were skipped.
    pub skipped: u64,
    /// Cycles, skipped ones included, in which a frame or an access to host memory was under way.
    pub outstanding: u64,
    /// Doorbells that were rung.
    pub doorbells: u64,
    /// Host time spent in the simulation.
    pub busy: Duration,
}

impl SimStats {
    /// Simulated cycles a second of host time, in thousands; only clocked cycles count.
    pub fn khz(&self) -> f64 {
        let seconds = self.busy.as_secs_f64();
        if seconds > 0.0 {
            self.evaluated as f64 / seconds / 1000.0
        } else {
            0.0
        }
    }
}

/// The simulation.
pub struct Sim {
    model: Box<dyn Endpoint>,
    /// The other end of the card's link.
    pub root: RootComplex,
    /// The card's port.
    pub port: WirePort,
    config: SimConfig,
    inputs: Inputs,
    outputs: Outputs,
    function: Option<FunctionInfo>,
    driver_ready: bool,
    stats: SimStats,
    round_trips: RoundTrips,
    /// `stats.evaluated` when something last moved on the link or the wire.
    moved: u64,
    failed: Option<SimError>,
}

impl Sim {
    /// The Verilated card with nobody on the wire, out of reset.
    pub fn new(config: SimConfig) -> Result<Self, SimError> {
        Self::with_wire(config, Box::new(NoWire))
    }

    /// The Verilated card and a wire, out of reset.
    pub fn with_wire(mut config: SimConfig, wire: Box<dyn Wire>) -> Result<Self, SimError> {
        config.strap.rx_lossless = wire.lossless();
        let model = VerilatedCore::new(config.data_w, config.seed, &config.strap)?;
        Self::with_endpoint(config, Box::new(model), wire)
    }

    /// Any card and wire, out of reset.
    pub fn with_endpoint(
        config: SimConfig,
        model: Box<dyn Endpoint>,
        wire: Box<dyn Wire>,
    ) -> Result<Self, SimError> {
        let width = model.beat_bytes();
        let rng = Rng::new(config.seed);
        let root = RootComplex::new(config.root.clone(), width, rng.fork(1).next_u64());
        let mut port = WirePort::new(wire, width, rng.fork(2).next_u64());
        port.stalls = config.wire_stalls;
        let mut sim = Self {
            model,
            root,
            port,
            config,
            inputs: Inputs::default(),
            outputs: Outputs::default(),
            function: None,
            driver_ready: false,
            stats: SimStats::default(),
            round_trips: RoundTrips::default(),
            moved: 0,
            failed: None,
        };
        sim.power_on()?;
        Ok(sim)
    }

    /// Queue pairs that the model was built with.
    pub fn queue_pairs(&self) -> u16 {
        QUEUE_PAIRS
    }

    /// What this simulation was made with.
    pub fn config(&self) -> &SimConfig {
        &self.config
    }

    /// Cycles of the time base, skipped ones included.
    pub fn now(&self) -> u64 {
        self.outputs.time
    }

    /// How much was simulated.
    pub fn stats(&self) -> SimStats {
        self.stats
    }

    /// What enumeration found, once it ran.
    pub fn function(&self) -> Option<&FunctionInfo> {
        self.function.as_ref()
    }

    /// True between the driver's DRIVER_OK and the next reset.
    pub fn is_driver_ready(&self) -> bool {
        self.driver_ready
    }

    /// Plugs the cable in or pulls it, and simulates the cycle in which the card notices.
    pub fn set_link(&mut self, up: bool) -> Result<(), SimError> {
        self.config.strap.link_up = up;
        self.model.set_strap(&self.config.strap);
        self.step()
    }

    /// Starts a waveform (cargo feature `trace`).
    pub fn trace(&mut self, path: &std::path::Path) -> Result<(), SimError> {
        Ok(self.model.trace(path)?)
    }

    /// Writes coverage (cargo feature `coverage`).
    pub fn write_coverage(&mut self, path: &std::path::Path) -> Result<(), SimError> {
        Ok(self.model.write_coverage(path)?)
    }

    fn power_on(&mut self) -> Result<(), SimError> {
        self.inputs = Inputs::default();
        for _ in 0..16 {
            self.clock()?;
        }
        self.inputs.rst_n = 1;
        // The outputs are those of the first cycle out of reset.
        self.clock()
    }

    fn clock(&mut self) -> Result<(), SimError> {
        let result = self.model.step(&self.inputs, &mut self.outputs);
        self.stats.evaluated += 1;
        result.map_err(|e| self.fail(e.into()))
    }

    fn fail(&mut self, error: SimError) -> SimError {
        self.failed.get_or_insert(error).clone()
    }

    /// The error that ended the simulation, if one did.
    pub fn check(&self) -> Result<(), SimError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// One cycle of the card.
    pub fn step(&mut self) -> Result<(), SimError> {
        self.step_skipping(0)
    }

    fn step_skipping(&mut self, skip: u64) -> Result<(), SimError> {
        self.check()?;
        let now = self.outputs.time;
        self.root.cycle(now, &self.outputs, &mut self.inputs);
        self.port.cycle(now, &self.outputs, &mut self.inputs);
        if self.root.has_violations() {
            let violations = self.root.take_violations();
            return Err(self.fail(SimError::Violations(violations)));
        }
        if let Some(fault) = self.port.take_fault() {
            return Err(self.fail(SimError::Stream(fault)));
        }
        if self.moves() {
            self.moved = self.stats.evaluated;
        }
        if self.outputs.idle == 0 || !self.root.dma_drained() || self.port.is_busy() {
            self.stats.outstanding += skip + 1;
        }
        self.inputs.skip = skip;
        self.clock()?;
        self.stats.skipped += skip;
        let expected = now.wrapping_add(skip).wrapping_add(1);
        if self.outputs.time != expected {
            let text = format!(
                "the time base went from {now} to {} in a cycle that skipped {skip}",
                self.outputs.time
            );
            let error = ModelError::Rtl { cycle: now, text };
            return Err(self.fail(error.into()));
        }
        Ok(())
    }

    /// True if something is offered on the link, or a beat passes on the wire, in this cycle.
    fn moves(&self) -> bool {
        let (o, i) = (&self.outputs, &self.inputs);
        let link = o.pt.valid | o.np.valid | o.cc.valid | i.rq.valid | i.rc.valid;
        link | o.tx.valid | i.rx.valid & o.rx_ready != 0
    }

    /// Nothing happens by itself before this time; the current time if something is going on.
    pub fn quiet_until(&self) -> u64 {
        let now = self.now();
        let o = &self.outputs;
        let busy = o.idle == 0 || o.pt.valid | o.np.valid | o.cc.valid | o.tx.valid != 0;
        if busy || self.port.is_busy() {
            return now;
        }
        let root = self.root.next_event().unwrap_or(u64::MAX);
        let port = self.port.next_event(now).unwrap_or(u64::MAX);
        o.deadline.min(root).min(port).max(now)
    }

    /// True if nothing at all will happen without the host or the wire's descriptor.
    pub fn is_asleep(&self) -> bool {
        self.quiet_until() == u64::MAX
    }

    /// True if nothing will move without the host or the wire's descriptor: the card sleeps, or it
    /// does nothing but look again and again for a buffer that a frame needs. What it looks at comes
    /// to it over the link, so a server may stop the clock.
    pub fn is_waiting(&self) -> bool {
        let quiet = self.stats.evaluated - self.moved >= QUIET_CYCLES
            && self.outputs.deadline == u64::MAX
            && self.root.next_event().is_none()
            && self.port.waits(self.now());
        quiet || self.is_asleep()
    }

    /// One cycle, or all cycles up to the next event, but never beyond `limit`.
    pub fn advance(&mut self, limit: u64) -> Result<(), SimError> {
        let now = self.now();
        let skip = if self.config.idle_skip {
            let until = self.quiet_until().min(limit);
            until.saturating_sub(now.saturating_add(1))
        } else {
            0
        };
        self.step_skipping(skip)
    }

    /// Simulates `cycles` cycles.
    pub fn run(&mut self, cycles: u64) -> Result<(), SimError> {
        let limit = self.now().saturating_add(cycles);
        self.timed(|sim| {
            while sim.now() < limit {
                sim.advance(limit)?;
            }
            Ok(())
        })
    }

    /// Simulates until `done`, which is asked before each step; false if `cycles` passed first.
    pub fn run_until(
        &mut self,
        cycles: u64,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<bool, SimError> {
        let limit = self.now().saturating_add(cycles);
        self.timed(|sim| {
            loop {
                if done(sim) {
                    return Ok(true);
                }
                if sim.now() >= limit {
                    return Ok(false);
                }
                sim.advance(limit)?;
            }
        })
    }

    /// Simulates until nothing is under way on the link, at most `cycles`.
    pub fn run_until_drained(&mut self, cycles: u64) -> Result<bool, SimError> {
        self.run_until(cycles, |sim| sim.root.is_idle())
    }

    /// At most `steps` steps, ended early by an interrupt or when nothing is left to do.
    pub fn run_steps(&mut self, steps: usize) -> Result<(), SimError> {
        self.timed(|sim| {
            for _ in 0..steps {
                if sim.root.has_message() || sim.is_asleep() {
                    break;
                }
                sim.advance(u64::MAX)?;
            }
            Ok(())
        })
    }

    /// Simulates until everything that the link took from the card so far has taken effect.
    pub fn drain_dma(&mut self) -> Result<(), SimError> {
        let mark = self.root.accepted();
        // The queue has a fixed delay; the rest is for a write that is being taken now.
        let cycles = self.root.config.read_latency + 4096;
        if self.run_until(cycles, |sim| sim.root.took_effect(mark))? {
            return Ok(());
        }
        Err(SimError::Timeout {
            what: "the end of DMA in flight",
            cycles,
        })
    }

    fn timed<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let start = Instant::now();
        let result = f(self);
        self.stats.busy += start.elapsed();
        result
    }

    fn complete(
        &mut self,
        tag: RequestTag,
        what: &'static str,
        offset: u64,
    ) -> Result<[u8; 8], SimError> {
        let cycles = self.config.request_timeout;
        let mut completion = None;
        self.run_until(cycles, |sim| {
            completion = sim.root.take_completion(tag);
            completion.is_some()
        })?;
        match completion {
            Some(c) if c.status == 0 => Ok(c.data),
            Some(c) => Err(SimError::Completion {
                what,
                offset,
                status: c.status,
            }),
            None => {
                self.root.forget(tag);
                Err(SimError::NoCompletion {
                    what,
                    offset,
                    cycles,
                })
            }
        }
    }

    /// Reads configuration space; simulates until the completions are there.
    pub fn config_read(&mut self, offset: u16, buf: &mut [u8]) -> Result<(), SimError> {
        check_config(offset, buf.len())?;
        let mut done = 0;
        while done < buf.len() {
            let at = offset + done as u16;
            let skip = usize::from(at & 3);
            let n = (4 - skip).min(buf.len() - done);
            let enables = enables(skip, n);
            let tag = self.root.config_read(self.now(), at & !3, enables);
            let data = self.complete(tag, "a configuration read", u64::from(at))?;
            buf[done..done + n].copy_from_slice(&data[skip..skip + n]);
            done += n;
        }
        Ok(())
    }

    /// Writes configuration space; simulates until the completions are there.
    pub fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), SimError> {
        check_config(offset, data.len())?;
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u16;
            let skip = usize::from(at & 3);
            let n = (4 - skip).min(data.len() - done);
            let mut dw = [0; 4];
            dw[skip..skip + n].copy_from_slice(&data[done..done + n]);
            let enables = enables(skip, n);
            let tag = self.root.config_write(self.now(), at & !3, enables, dw);
            self.complete(tag, "a configuration write", u64::from(at))?;
            done += n;
        }
        Ok(())
    }

    /// Reads 1, 2, 4 or 8 aligned bytes of the register BAR.
    pub fn bar_read(&mut self, offset: u64, len: usize) -> Result<u64, SimError> {
        let base = self.check_bar(offset, len)?;
        let tag = self.root.read(self.now(), base + offset, len);
        let data = self.complete(tag, "a register read", offset)?;
        let value = u64::from_le_bytes(data) >> (8 * (offset & 3));
        Ok(if len == 8 {
            value
        } else {
            value & ((1 << (8 * len)) - 1)
        })
    }

    /// Writes 1, 2, 4 or 8 aligned bytes of the register BAR: a posted write, nothing is simulated
    /// unless many wait already.
    pub fn bar_write(&mut self, offset: u64, len: usize, value: u64) -> Result<(), SimError> {
        self.check()?;
        let base = self.check_bar(offset, len)?;
        let bytes = value.to_le_bytes();
        // A link holds only so many posted requests.
        let cycles = self.config.request_timeout;
        if !self.run_until(cycles, |sim| sim.root.queued_requests() < 64)? {
            let what = "a register write";
            return Err(SimError::NoCompletion {
                what,
                offset,
                cycles,
            });
        }
        self.root.write(self.now(), base + offset, &bytes[..len]);
        if DOORBELLS.contains(&offset) {
            self.stats.doorbells += 1;
            self.round_trips.rung(self.outputs.time);
        }
        self.watch_status(offset, &bytes[..len]);
        Ok(())
    }

    fn check_bar(&self, offset: u64, len: usize) -> Result<u64, SimError> {
        let bar = self
            .function
            .as_ref()
            .map(|f| f.bar)
            .ok_or_else(|| SimError::Config("the card was not enumerated".to_owned()))?;
        let inside = offset
            .checked_add(len as u64)
            .is_some_and(|end| end <= bar.size);
        if !inside || !matches!(len, 1 | 2 | 4 | 8) || !offset.is_multiple_of(len as u64) {
            return Err(SimError::Access {
                offset,
                len,
                size: bar.size,
            });
        }
        Ok(bar.address)
    }

    /// device_status tells the wire when the driver is ready.
    fn watch_status(&mut self, offset: u64, data: &[u8]) {
        const DEVICE_STATUS: u64 = 0x14;
        const DRIVER_OK: u8 = 4;
        const NEEDS_RESET_OR_FAILED: u8 = 0xc0;
        let index = DEVICE_STATUS.wrapping_sub(offset) as usize;
        if let Some(status) = data.get(index) {
            let ready = status & DRIVER_OK != 0 && status & NEEDS_RESET_OR_FAILED == 0;
            self.set_driver_ready(ready);
        }
    }

    fn set_driver_ready(&mut self, ready: bool) {
        if ready != self.driver_ready {
            self.driver_ready = ready;
            let now = self.now();
            self.port.wire_mut().driver_ready(now, ready);
        }
    }

    /// The vector of the next MSI-X message (the data that the table was programmed with).
    pub fn take_vector(&mut self) -> Option<u16> {
        let message = self.root.take_message()?;
        self.round_trips.interrupt(message.time);
        Some(message.data as u16)
    }

    /// The median time from a doorbell to the next interrupt since the last call.
    pub fn take_round_trips(&mut self) -> Option<u64> {
        self.round_trips.take_median()
    }

    /// Lets the wire move data from and to its descriptor.
    pub fn poll_wire(&mut self) -> std::io::Result<()> {
        self.port.wire_mut().poll()
    }
}

fn enables(skip: usize, n: usize) -> u8 {
    ((1_u16 << n) - 1) as u8 * (1 << skip)
}

fn check_config(offset: u16, len: usize) -> Result<(), SimError> {
    const SIZE: u64 = 4096;
    if u64::from(offset) + len as u64 <= SIZE {
        Ok(())
    } else {
        Err(SimError::Access {
            offset: u64::from(offset),
            len,
            size: SIZE,
        })
    }
}
