//! Changing the steering, while others look at it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use super::classes::{self, Classes};
use super::cpus::Cpus;
use super::error::XpsError;
use super::map::{Map, NoMemory};
use super::mask::{Mask, MaskError};
use super::probe::Probe;
use super::steering::{Select, Steering, View};

/// How long a reader may hold a view when it is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at whether it still does.
const LOOK: Duration = Duration::from_micros(50);

/// Transmit steering of a card: which transmit queue takes a packet.
///
/// Shared by all threads that send. [`Xps::view`] neither locks nor writes to memory that threads
/// share; whoever changes something replaces all of it at once.
#[repr(C)]
pub struct Xps {
    published: Published,
    control: Control,
}

/// What readers read, in a line that only a change writes.
#[repr(C, align(64))]
struct Published {
    steering: ArcSwap<Steering>,
}

/// What only those read who change something.
#[repr(C, align(64))]
struct Control {
    state: Mutex<State>,
    /// Transmit and receive queues that there are.
    tx_queues: u16,
    rx_queues: u16,
}

struct State {
    cpus: Cpus,
    /// What was replaced and may still be looked at.
    retired: Vec<Arc<Steering>>,
    /// Queues from here on hold no packets of ours.
    flushed: u16,
    patience: Duration,
}

// The pointer's neighbours are padding: a map is found without a look at a line that changes.
const _: () = assert!(size_of::<Published>() == 64 && align_of::<Published>() == 64);
const _: () = assert!(std::mem::offset_of!(Xps, published) == 0);
const _: () = assert!(std::mem::offset_of!(Xps, control) == 64);
const _: () = assert!(align_of::<Xps>() == 64 && size_of::<Xps>().is_multiple_of(64));

impl From<NoMemory> for XpsError {
    fn from(NoMemory { words }: NoMemory) -> Self {
        Self::Memory { words }
    }
}

/// Which of the two maps.
#[derive(Clone, Copy)]
enum Kind {
    Cpus,
    RxQueues,
}

impl Kind {
    fn of(self, steering: &Steering) -> Option<&Map> {
        match self {
            Self::Cpus => steering.cpus.as_ref(),
            Self::RxQueues => steering.rxqs.as_ref(),
        }
    }
}

impl Xps {
    /// Steering of a card with so many transmit and receive queues, all in use, without maps: packets
    /// are spread by their hash.
    ///
    /// # Errors
    /// [`XpsError::Queues`] if there is no transmit queue.
    pub fn new(tx_queues: u16, rx_queues: u16, cpus: Cpus) -> Result<Self, XpsError> {
        if tx_queues == 0 {
            return Err(XpsError::Queues {
                queues: 0,
                allocated: 0,
            });
        }
        let steering = Steering {
            queues: tx_queues,
            ..Steering::default()
        };
        Ok(Self {
            published: Published {
                steering: ArcSwap::from_pointee(steering),
            },
            control: Control {
                state: Mutex::new(State {
                    cpus,
                    retired: Vec::new(),
                    flushed: tx_queues,
                    patience: PATIENCE,
                }),
                tx_queues,
                rx_queues,
            },
        })
    }

    /// The steering as it is now, for a packet or a burst of them.
    pub fn view(&self) -> View<'_> {
        View::new(self.published.steering.load())
    }

    /// [`Xps::view`], for who wants to know what it reads.
    pub fn view_probed(&self, probe: &mut impl Probe) -> View<'_> {
        probe.read(&self.published.steering);
        self.view()
    }

    /// Number of transmit queues that there are.
    pub fn tx_queues(&self) -> u16 {
        self.control.tx_queues
    }

    /// Number of receive queues that there are.
    pub fn rx_queues(&self) -> u16 {
        self.control.rx_queues
    }

    /// Number of transmit queues in use.
    pub fn queues(&self) -> u16 {
        self.view().queues()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What it guards is whole after each statement.
        (self.control.state.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes another steering of the present one and puts it in its place, in one step.
    fn change(
        &self,
        state: &mut State,
        make: impl FnOnce(&Steering) -> Result<Steering, XpsError>,
    ) -> Result<(), XpsError> {
        let next = make(&self.published.steering.load())?;
        let old = self.published.steering.swap(Arc::new(next));
        state.retired.push(old);
        state.retired.retain(|old| Arc::strong_count(old) > 1);
        Ok(())
    }

    /// Waits until nobody looks at anything that was replaced.
    fn synchronize(&self, state: &mut State) -> Result<(), XpsError> {
        let begin = Instant::now();
        loop {
            // A reader that came before the swap is counted by it.
            state.retired.retain(|old| Arc::strong_count(old) > 1);
            let waited = begin.elapsed();
            match state.retired.is_empty() {
                true => return Ok(()),
                false if waited >= state.patience => return Err(XpsError::Readers { waited }),
                false => std::thread::sleep(LOOK),
            }
        }
    }

    /// Sets the CPUs whose packets this transmit queue takes, beside other queues that have them, too.
    /// CPUs that are not online are left out. An empty mask takes the queue out of the map.
    ///
    /// # Errors
    /// [`XpsError`] for a queue that is not in use, a card with one queue, a CPU that cannot be, and
    /// want of memory; the map is as before then.
    pub fn set_cpus(&self, queue: u16, cpus: &Mask) -> Result<(), XpsError> {
        let mut state = self.lock();
        let possible = state.cpus.possible();
        within(cpus, possible).map_err(XpsError::Cpus)?;
        let online = state.cpus.online().clone();
        let listed = |cpu: u32| {
            let cpu = cpu as usize;
            cpus.contains(cpu) && online.contains(cpu)
        };
        self.set(&mut state, Kind::Cpus, possible, queue, listed)
    }

    /// Sets the receive queues whose sockets send on this transmit queue. This map goes before that of
    /// the CPUs.
    ///
    /// # Errors
    /// As [`Xps::set_cpus`].
    pub fn set_rxqs(&self, queue: u16, rxqs: &Mask) -> Result<(), XpsError> {
        let mut state = self.lock();
        let there = usize::from(self.rx_queues());
        within(rxqs, there).map_err(XpsError::RxQueues)?;
        let listed = |rxq: u32| rxqs.contains(rxq as usize);
        self.set(&mut state, Kind::RxQueues, there, queue, listed)
    }

    fn set(
        &self,
        state: &mut State,
        kind: Kind,
        ids: usize,
        queue: u16,
        listed: impl Fn(u32) -> bool,
    ) -> Result<(), XpsError> {
        self.change(state, |old| {
            let class = self.class_of(old, queue)?;
            let classes = u32::from(old.classes.count().max(1));
            let mut next = old.without(0..0)?;
            let map = match kind {
                Kind::Cpus => &mut next.cpus,
                Kind::RxQueues => &mut next.rxqs,
            };
            let size = (ids as u32, classes);
            *map = Map::with(map.as_ref(), size, (queue, u32::from(class)), listed)?;
            Ok(next)
        })
    }

    /// The class of a queue that something may be set of.
    fn class_of(&self, steering: &Steering, queue: u16) -> Result<u8, XpsError> {
        let (allocated, in_use) = (self.tx_queues(), steering.queues);
        if queue >= allocated {
            return Err(XpsError::NoQueue { queue, allocated });
        }
        if allocated == 1 {
            return Err(XpsError::SingleQueue);
        }
        if queue >= in_use {
            return Err(XpsError::NotInUse {
                queue,
                in_use,
                allocated,
            });
        }
        let class = steering.classes.of_queue(queue);
        class.ok_or(XpsError::Unclassed { queue })
    }

    /// The CPUs whose packets a transmit queue takes.
    ///
    /// # Errors
    /// [`XpsError`] for a queue that is not in use, and a card with one queue.
    pub fn cpus(&self, queue: u16) -> Result<Mask, XpsError> {
        let possible = self.lock().cpus.possible();
        self.mask(Kind::Cpus, possible, queue)
    }

    /// The receive queues whose sockets send on a transmit queue.
    ///
    /// # Errors
    /// As [`Xps::cpus`].
    pub fn rxqs(&self, queue: u16) -> Result<Mask, XpsError> {
        self.mask(Kind::RxQueues, usize::from(self.rx_queues()), queue)
    }

    fn mask(&self, kind: Kind, ids: usize, queue: u16) -> Result<Mask, XpsError> {
        let steering = self.published.steering.load();
        self.class_of(&steering, queue)?;
        let map = kind.of(&steering);
        Ok(map.map_or_else(|| Mask::new(ids), |map| map.mask(queue)))
    }

    /// Says which CPUs are online, for masks that are set from now on. Maps stay as they are.
    ///
    /// # Errors
    /// [`XpsError::Cpus`] for a CPU that cannot be.
    pub fn set_online(&self, online: &Mask) -> Result<(), XpsError> {
        let mut state = self.lock();
        let possible = state.cpus.possible();
        within(online, possible).map_err(XpsError::Cpus)?;
        let online = Mask::of(online.iter(), possible).map_err(XpsError::Cpus)?;
        state.cpus = Cpus::with_online(online);
        Ok(())
    }

    /// Sets a choice that goes before all maps, or takes it away.
    ///
    /// # Errors
    /// [`XpsError::Memory`].
    pub fn set_select(&self, select: Option<Select>) -> Result<(), XpsError> {
        self.change(&mut self.lock(), |old| {
            let mut next = old.without(0..0)?;
            next.select = select;
            Ok(next)
        })
    }

    /// Changes the number of transmit queues in use.
    ///
    /// To have fewer, the choice is limited first; when no thread can still choose one of the others,
    /// `flush` is called with them: it lets their packets go or throws them away. Then they are taken
    /// out of the maps. A socket that remembers one of them chooses again. Returns what `flush`
    /// returned, `None` if it had nothing to do. Nothing else can be changed while `flush` runs.
    ///
    /// The caller must hold no [`View`].
    ///
    /// # Errors
    /// [`XpsError::Queues`]; [`XpsError::Readers`] if a thread keeps a view for more than 10 s: then
    /// the choice is limited, and another call with the same number does the rest;
    /// [`XpsError::Memory`], with nothing changed or the queues only left in the maps, where they are
    /// not chosen.
    pub fn set_queues<R>(
        &self,
        queues: u16,
        flush: impl FnOnce(Range<u16>) -> R,
    ) -> Result<Option<R>, XpsError> {
        let allocated = self.tx_queues();
        if queues == 0 || queues > allocated {
            return Err(XpsError::Queues { queues, allocated });
        }
        let mut state = self.lock();
        self.change(&mut state, |old| {
            let classes = old.classes.limited(queues);
            let next = if classes.count() == old.classes.count() {
                // What an earlier call could not take out is not to come back with the queues.
                old.without(old.queues..u16::MAX)?
            } else {
                old.bare()
            };
            Ok(Steering {
                queues,
                classes,
                ..next
            })
        })?;
        if queues >= state.flushed {
            state.flushed = queues;
            return Ok(None);
        }
        self.synchronize(&mut state)?;
        let flushed = flush(queues..state.flushed);
        state.flushed = queues;
        self.change(&mut state, |old| Ok(old.without(queues..u16::MAX)?))?;
        Ok(Some(flushed))
    }

    /// Divides the queues into so many traffic classes, of at most 16, or into none (0). All maps are
    /// dropped; every priority is in class 0, and no class has queues until they are set: packets of
    /// such a class take any.
    ///
    /// # Errors
    /// [`XpsError::NoClass`] for more than 16.
    pub fn set_classes(&self, classes: u8) -> Result<(), XpsError> {
        if usize::from(classes) > classes::MOST {
            return Err(XpsError::NoClass {
                class: classes - 1,
                classes: classes::MOST as u8,
            });
        }
        self.change(&mut self.lock(), |old| {
            Ok(Steering {
                classes: Classes::new(classes),
                ..old.bare()
            })
        })
    }

    /// Gives queues to a traffic class; they are taken out of all maps.
    ///
    /// # Errors
    /// [`XpsError::NoClass`], [`XpsError::ClassQueues`] for queues that are not in use,
    /// [`XpsError::Memory`] with nothing changed.
    pub fn set_class_queues(&self, class: u8, queues: Range<u16>) -> Result<(), XpsError> {
        self.change(&mut self.lock(), |old| {
            has_class(old, class)?;
            if queues.end > old.queues {
                return Err(XpsError::ClassQueues {
                    first: queues.start,
                    last: queues.end - 1,
                    in_use: old.queues,
                });
            }
            let mut next = old.without(queues.clone())?;
            next.classes.set_queues(class, &queues);
            Ok(next)
        })
    }

    /// Puts packets of a priority (0 to 15) into a traffic class.
    ///
    /// # Errors
    /// [`XpsError::Priority`], [`XpsError::NoClass`], [`XpsError::Memory`].
    pub fn set_priority(&self, priority: u8, class: u8) -> Result<(), XpsError> {
        if usize::from(priority) >= classes::MOST {
            return Err(XpsError::Priority { priority });
        }
        self.change(&mut self.lock(), |old| {
            has_class(old, class)?;
            let mut next = old.without(0..0)?;
            next.classes.set_priority(priority, class);
            Ok(next)
        })
    }
}

fn has_class(steering: &Steering, class: u8) -> Result<(), XpsError> {
    match steering.classes.count() {
        classes if class >= classes => Err(XpsError::NoClass { class, classes }),
        _ => Ok(()),
    }
}

/// Whether all numbers are below `bits`, whatever the size of the mask.
fn within(mask: &Mask, bits: usize) -> Result<(), MaskError> {
    match mask.last() {
        Some(number) if number >= bits => Err(MaskError::Beyond { number, bits }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn s3_r7_view_that_is_kept_is_an_error_and_the_next_call_flushes() {
        let xps = Xps::new(8, 8, Cpus::new(4)).unwrap();
        xps.lock().patience = Duration::from_millis(5);
        xps.set_cpus(7, &Mask::all(4)).unwrap();
        let view = xps.view();
        let error = xps.set_queues(4, |_| unreachable!()).unwrap_err();
        assert!(matches!(error, XpsError::Readers { .. }), "{error}");
        assert!(error.to_string().contains("drop the view"));
        // Limited all the same; the view is what it was.
        assert_eq!((xps.queues(), view.queues()), (4, 8));
        drop(view);
        assert_eq!(xps.set_queues(4, |dead| dead).unwrap(), Some(4..8));
        assert_eq!(xps.set_queues(4, |dead| dead).unwrap(), None);
        // Queues that come back after such an error bring no mask.
        xps.set_cpus(3, &Mask::all(4)).unwrap();
        let view = xps.view();
        assert!(xps.set_queues(2, |_| unreachable!()).is_err());
        drop(view);
        assert_eq!(xps.set_queues(8, |dead| dead).unwrap(), None);
        assert!(xps.cpus(3).unwrap().is_empty());
    }

    #[test]
    fn s3_r6_what_nobody_looks_at_is_freed_and_what_somebody_looks_at_is_not() {
        let xps = Xps::new(8, 8, Cpus::new(4)).unwrap();
        let retired = || xps.lock().retired.len();
        let view = xps.view();
        for queue in 0..8 {
            xps.set_cpus(queue, &Mask::all(4)).unwrap();
        }
        assert_eq!(retired(), 1);
        drop(view);
        xps.set_cpus(0, &Mask::all(4)).unwrap();
        assert_eq!(retired(), 0);
    }
}
