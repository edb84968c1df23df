//! What threads look at to choose a queue, whole and unchanged; and the choice.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arc_swap::Guard;

use super::Xps;
use super::classes::Classes;
use super::flow::Socket;
use super::map::{Map, NoMemory, scale};
use super::probe::Probe;

/// A packet that needs a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// CPU of the sender ([`current_cpu`](super::current_cpu)); one that is not there has no answer in
    /// the map.
    pub cpu: u32,
    /// The same for all packets of a flow, and spread over all 32 bits.
    pub hash: u32,
    /// Chooses the traffic class by its lowest 4 bits.
    pub priority: u32,
    /// The receive queue on which it came, if it is forwarded.
    pub rx_queue: Option<u16>,
    /// Nothing of its flow is in flight, and it is the first segment if it was cut: it may go another
    /// way than those before it.
    pub ooo_okay: bool,
}

/// A queue, and why this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Number of the transmit queue, below the number in use.
    pub queue: u16,
    /// What chose it.
    pub by: Rule,
}

impl Pick {
    /// Queue 0 instead of one that is not in use.
    fn capped(self, queues: u16) -> Self {
        if self.queue < queues {
            return self;
        }
        Self {
            queue: 0,
            by: Rule::Capped,
        }
    }
}

/// What chose a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// There is one queue only.
    Single,
    /// The function set by [`Xps::set_select`].
    Select,
    /// The socket stays on its queue.
    Socket,
    /// The map of the receive queue that the socket has recorded.
    RxMap,
    /// The map of the sender's CPU.
    CpuMap,
    /// The receive queue of a forwarded packet.
    RxQueue,
    /// The hash over the queues of the class.
    Hash,
    /// Queue 0, because what was chosen is not in use: by the function set by [`Xps::set_select`], or
    /// by the hash over a class with such queues.
    Capped,
}

/// A choice of the user's own, which goes before all maps; `None` leaves it to them.
pub type Select = fn(&Packet) -> Option<u16>;

/// All that a choice depends on. It is not changed once published; its memory shares no cache line
/// with anything that is.
#[derive(Default)]
#[repr(C, align(64))]
pub(super) struct Steering {
    /// Queues in use.
    pub(super) queues: u16,
    pub(super) select: Option<Select>,
    pub(super) cpus: Option<Map>,
    pub(super) rxqs: Option<Map>,
    pub(super) classes: Classes,
}

// Whole lines: neither the counts of references in front of it nor what lies behind it share one.
const _: () = assert!(align_of::<Steering>() == 64 && size_of::<Steering>().is_multiple_of(64));
// All but the classes is in the first line.
const _: () = assert!(std::mem::offset_of!(Steering, rxqs) + size_of::<Option<Map>>() <= 64);

/// What a thread sees of the steering: whole, and the same until it is dropped. Hold it for a burst
/// at most: [`Xps::set_queues`] waits for it.
pub struct View<'a> {
    steering: Guard<Arc<Steering>>,
    xps: PhantomData<&'a Xps>,
}

impl View<'_> {
    pub(super) fn new(steering: Guard<Arc<Steering>>) -> Self {
        Self {
            steering,
            xps: PhantomData,
        }
    }

    /// Number of queues in use.
    pub fn queues(&self) -> u16 {
        self.steering.queues
    }

    /// The queue for a packet, of this socket if it has one, by the rules of Linux:
    ///
    /// 1. the only queue,
    /// 2. what [`Xps::set_select`] says,
    /// 3. the socket's queue, unless it is not in use or `ooo_okay`,
    /// 4. the map of the socket's receive queue,
    /// 5. the map of the sender's CPU,
    /// 6. the receive queue of a forwarded packet, folded into the queues of the class; or the hash
    ///    over them.
    ///
    /// What 4 to 6 say is stored in a socket that is whole and has a route, if it changed.
    pub fn pick(&self, packet: &Packet, socket: Option<&mut Socket>) -> Pick {
        self.pick_probed(packet, socket, &mut ())
    }

    /// [`View::pick`], for who wants to know what it reads.
    pub fn pick_probed(
        &self,
        packet: &Packet,
        mut socket: Option<&mut Socket>,
        probe: &mut impl Probe,
    ) -> Pick {
        let steering = &**self.steering;
        let queues = steering.queues;
        probe.read(&steering.queues);
        if queues <= 1 {
            return Pick {
                queue: 0,
                by: Rule::Single,
            };
        }
        probe.read(&steering.select);
        if let Some(queue) = steering.select.and_then(|select| select(packet)) {
            let by = Rule::Select;
            return Pick { queue, by }.capped(queues);
        }
        if let Some(queue) = socket.as_ref().and_then(|socket| socket.queue())
            && queue < queues
            && !packet.ooo_okay
        {
            return Pick {
                queue,
                by: Rule::Socket,
            };
        }
        let rx_queue = socket.as_ref().and_then(|socket| socket.rx_queue());
        let pick = (steering.by_maps(packet, rx_queue, probe))
            .unwrap_or_else(|| steering.by_hash(packet, probe));
        if let Some(socket) = &mut socket {
            socket.store(pick.queue);
        }
        pick.capped(queues)
    }
}

impl Steering {
    /// The same with these queues in no map.
    pub(super) fn without(&self, gone: Range<u16>) -> Result<Self, NoMemory> {
        Ok(Self {
            cpus: Map::without(self.cpus.as_ref(), gone.clone())?,
            rxqs: Map::without(self.rxqs.as_ref(), gone)?,
            ..self.bare()
        })
    }

    /// The same without maps.
    pub(super) fn bare(&self) -> Self {
        Self {
            queues: self.queues,
            select: self.select,
            classes: self.classes,
            cpus: None,
            rxqs: None,
        }
    }

    fn by_maps(
        &self,
        packet: &Packet,
        rx_queue: Option<u16>,
        probe: &mut impl Probe,
    ) -> Option<Pick> {
        let choice = (packet.hash, self.queues);
        let mut look = |map: &Option<Map>, id: u32, by| {
            probe.read(map);
            let map = map.as_ref()?;
            probe.read(&self.classes);
            map.pick((id, self.classes.of(packet.priority)), choice, by, probe)
        };
        rx_queue
            .and_then(|rx_queue| look(&self.rxqs, u32::from(rx_queue), Rule::RxMap))
            .or_else(|| look(&self.cpus, packet.cpu, Rule::CpuMap))
    }

    fn by_hash(&self, packet: &Packet, probe: &mut impl Probe) -> Pick {
        probe.read(&self.classes);
        let (first, count) = self.classes.range(packet.priority, self.queues);
        match packet.rx_queue {
            Some(rx_queue) => Pick {
                queue: first + rx_queue.checked_sub(first).unwrap_or(rx_queue) % count,
                by: Rule::RxQueue,
            },
            None => Pick {
                queue: first + scale(packet.hash, u32::from(count)) as u16,
                by: Rule::Hash,
            },
        }
    }
}
