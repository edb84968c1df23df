//! One stream through a card and through the model.

use ferronic_cosim_tests::lro::{Closed, Expected, Plan, Receiver, Settings, steered, undone};
use ferronic_oracle::card;
use ferronic_oracle::lro::{Config, Profile, Unit};
use ferronic_oracle::vectors::Arrival;
use ferronic_sim::SimConfig;
use ferronic_spec::Features;

/// How a stream is received.
pub struct Bench {
    pub name: String,
    pub sim: SimConfig,
    pub plan: Plan,
    pub settings: Settings,
}

impl Bench {
    /// Nothing ends by time, there are more buffers than can be held; `seed` is that of random
    /// stalls, 0 for none.
    pub fn new(name: impl Into<String>, data_w: u32, seed: u64) -> Self {
        let sim = match seed {
            0 => SimConfig::default(),
            _ => SimConfig::adversarial(seed),
        };
        Self {
            name: name.into(),
            sim: SimConfig { data_w, ..sim },
            plan: Plan::default(),
            settings: Settings::default(),
        }
    }

    /// The model of it.
    fn model(&self) -> Config {
        let merge = self.plan.features.contains(Features::MRG_RXBUF);
        let size = self.plan.sizes[0];
        Config {
            profile: if self.settings.relaxed {
                Profile::Relaxed
            } else {
                Profile::Strict
            },
            max_bytes: self.settings.max_bytes.into(),
            max_buffers: if merge { 64 } else { 1 },
            buffer: size,
            first_descriptor: size,
            ..card::config()
        }
    }

    pub fn open(&self) -> Receiver {
        let settings = Some(self.settings);
        Receiver::open(&self.name, self.sim.clone(), self.plan.clone(), settings)
    }

    /// Receives frames, and compares every unit and every counter with the model's. All buffers are
    /// alike.
    pub fn compare(&self, frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Unit> {
        let frames = (0..).zip(frames);
        let arrivals = frames.map(|(at, frame)| Arrival {
            at,
            queue: 0,
            frame,
        });
        let arrivals = steered(arrivals, self.plan.pairs);
        let mut receiver = self.open();
        // A queue whose descriptors are still on their way has no buffers for the card.
        receiver.run(5000);
        receiver.push(&arrivals);
        receiver.settle();
        receiver.stop();
        receiver.check();
        receiver.check_counters(&arrivals);
        let expected = Expected::of(self.model(), &arrivals);
        let closed = receiver.closed();
        let units = match expected.compare(&receiver.units, &closed, &arrivals) {
            Ok(units) => units,
            Err(difference) => receiver.fail(&difference),
        };
        receiver.close();
        units
    }

    /// Receives frames at their times, whatever is merged of them, and compares the frames that come
    /// of it with those that arrived.
    pub fn undo(&self, arrivals: impl IntoIterator<Item = Arrival>) -> (Vec<Unit>, Closed) {
        let arrivals = steered(arrivals, self.plan.pairs);
        let mut receiver = self.open();
        receiver.push_timed(&arrivals, 1);
        receiver.settle();
        receiver.stop();
        receiver.check();
        receiver.check_counters(&arrivals);
        if let Err(difference) = undone(&arrivals, &receiver.units) {
            receiver.fail(&difference);
        }
        let closed = receiver.closed();
        let alone = receiver.units.iter().filter(|unit| unit.segments == 1);
        let passed = alone.count() as u32;
        let units = receiver.units.len() as u32;
        // Each context is a unit, each unit that was merged was a context.
        let sound = closed.all() == closed.opened
            && closed.opened <= units
            && units - passed <= closed.opened
            && receiver.segments() as u32 == units + closed.merged;
        if !sound {
            receiver.fail(&format!(
                "{closed:?} of {} frames in {units} units, {passed} of one frame",
                arrivals.len()
            ));
        }
        let units = std::mem::take(&mut receiver.units);
        receiver.close();
        (units, closed)
    }
}
