//! Which queue a packet takes: nothing is inverted, cached or packed here, each rule is looked up as
//! it is written.

use std::collections::BTreeSet;
use std::ops::Range;

/// Which kind of mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// CPUs of senders.
    Cpus,
    /// Receive queues of sockets.
    RxQueues,
}

/// Of a packet, what matters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// CPU of the sender.
    pub cpu: u32,
    /// Hash of its flow.
    pub hash: u32,
    /// Its priority.
    pub priority: u32,
    /// Receive queue of a forwarded packet.
    pub rx_queue: Option<u16>,
    /// It may overtake.
    pub ooo_okay: bool,
    /// What the driver's own choice says, if it has one.
    pub driver: Option<u16>,
}

/// Of a socket, what matters.
#[derive(Clone, Copy, Debug)]
pub struct Socket {
    /// The queue it is on; negative: none.
    pub queue: i32,
    /// Receive queue of its last packet; negative: none.
    pub rx_queue: i32,
    /// It is a full socket.
    pub full: bool,
    /// It has a cached route.
    pub route: bool,
}

/// The card's steering.
#[derive(Clone, Debug)]
pub struct Rules {
    allocated: u16,
    real: u16,
    rx_queues: u32,
    cpus: u32,
    online: BTreeSet<u32>,
    classes: u8,
    class_of_priority: [u8; 16],
    queues_of_class: Vec<Range<u16>>,
    /// A queue, its class when the mask was set, and a CPU or receive queue in its mask.
    masks: BTreeSet<(Kind, u16, u8, u32)>,
}

/// The setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Rules {
    /// All queues in use, all CPUs online, no masks.
    pub fn new(tx_queues: u16, rx_queues: u16, cpus: u32) -> Self {
        Self {
            allocated: tx_queues,
            real: tx_queues,
            rx_queues: u32::from(rx_queues),
            cpus,
            online: (0..cpus).collect(),
            classes: 0,
            class_of_priority: [0; 16],
            queues_of_class: vec![0..0; 16],
            masks: BTreeSet::new(),
        }
    }

    fn queue_class(&self, queue: u16) -> Option<u8> {
        match self.classes {
            0 => Some(0),
            n => (0..n).find(|c| self.queues_of_class[usize::from(*c)].contains(&queue)),
        }
    }

    /// Linux has the file of a queue's mask for queues in use of a card with several.
    fn mask_exists(&self, queue: u16) -> Result<u8, Refused> {
        if self.allocated == 1 || queue >= self.real {
            return Err(Refused);
        }
        self.queue_class(queue).ok_or(Refused)
    }

    /// S3-R5.
    ///
    /// # Errors
    /// For a queue that is not in use, a number that is not there, a card with one queue.
    pub fn set(&mut self, kind: Kind, queue: u16, ids: &BTreeSet<u32>) -> Result<(), Refused> {
        let there = match kind {
            Kind::Cpus => self.cpus,
            Kind::RxQueues => self.rx_queues,
        };
        if ids.iter().any(|id| *id >= there) {
            return Err(Refused);
        }
        let class = self.mask_exists(queue)?;
        self.masks.retain(|(k, q, ..)| *k != kind || *q != queue);
        for id in ids {
            if kind == Kind::RxQueues || self.online.contains(id) {
                self.masks.insert((kind, queue, class, *id));
            }
        }
        Ok(())
    }

    /// The mask of a queue.
    ///
    /// # Errors
    /// As [`Rules::set`].
    pub fn get(&self, kind: Kind, queue: u16) -> Result<BTreeSet<u32>, Refused> {
        self.mask_exists(queue)?;
        let own = self.masks.iter().filter(|m| (m.0, m.1) == (kind, queue));
        Ok(own.map(|m| m.3).collect())
    }

    /// CPUs that run from now on.
    ///
    /// # Errors
    /// For one that cannot be.
    pub fn set_online(&mut self, online: &BTreeSet<u32>) -> Result<(), Refused> {
        if online.iter().any(|cpu| *cpu >= self.cpus) {
            return Err(Refused);
        }
        self.online.clone_from(online);
        Ok(())
    }

    /// S3-R7: the number of queues in use.
    ///
    /// # Errors
    /// For none or more than there are.
    pub fn set_real(&mut self, real: u16) -> Result<(), Refused> {
        if real == 0 || real > self.allocated {
            return Err(Refused);
        }
        self.real = real;
        self.masks.retain(|m| m.1 < real);
        if self.classes > 0 {
            if self.queues_of_class[0].end > real {
                self.set_classes(0)?;
            }
            for class in &mut self.class_of_priority {
                if self.queues_of_class[usize::from(*class)].end > real {
                    *class = 0;
                }
            }
        }
        Ok(())
    }

    /// Traffic classes; all masks are gone.
    ///
    /// # Errors
    /// For more than 16.
    pub fn set_classes(&mut self, classes: u8) -> Result<(), Refused> {
        if classes > 16 {
            return Err(Refused);
        }
        self.classes = classes;
        self.class_of_priority = [0; 16];
        self.queues_of_class = vec![0..0; 16];
        self.masks.clear();
        Ok(())
    }

    /// Queues of a class; their masks are gone.
    ///
    /// # Errors
    /// For a class that is not there or queues that are not in use.
    pub fn set_class_queues(&mut self, class: u8, queues: Range<u16>) -> Result<(), Refused> {
        if class >= self.classes || queues.end > self.real {
            return Err(Refused);
        }
        self.masks.retain(|m| !queues.contains(&m.1));
        self.queues_of_class[usize::from(class)] = queues;
        Ok(())
    }

    /// Class of a priority.
    ///
    /// # Errors
    /// For a class or priority that is not there.
    pub fn set_priority(&mut self, priority: u8, class: u8) -> Result<(), Refused> {
        if priority > 15 || class >= self.classes {
            return Err(Refused);
        }
        self.class_of_priority[usize::from(priority)] = class;
        Ok(())
    }

    /// S3-R3.
    fn entry(&self, kind: Kind, id: u32, class: u8, hash: u32) -> i32 {
        let mut queues: Vec<u16> = Vec::new();
        for (k, queue, c, i) in &self.masks {
            if (*k, *c, *i) == (kind, class, id) {
                queues.push(*queue);
            }
        }
        queues.sort_unstable();
        let chosen = match queues.len() {
            0 => return -1,
            1 => queues[0],
            n => queues[((u64::from(hash) * n as u64) >> 32) as usize],
        };
        if chosen >= self.real {
            return -1;
        }
        i32::from(chosen)
    }

    /// S3-R4.
    fn by_hash(&self, packet: &Packet) -> u16 {
        let class = self.class_of_priority[(packet.priority & 15) as usize];
        let mut queues = 0..self.real;
        if self.classes > 0 && !self.queues_of_class[usize::from(class)].is_empty() {
            queues = self.queues_of_class[usize::from(class)].clone();
        }
        let count = queues.end - queues.start;
        if let Some(mut number) = packet.rx_queue {
            if number >= queues.start {
                number -= queues.start;
            }
            while number >= count {
                number -= count;
            }
            return queues.start + number;
        }
        queues.start + ((u64::from(packet.hash) * u64::from(count)) >> 32) as u16
    }

    /// S3-R2.
    pub fn pick(&self, packet: &Packet, socket: Option<&mut Socket>) -> u16 {
        if self.real == 1 {
            return 0;
        }
        if let Some(queue) = packet.driver {
            return if queue < self.real { queue } else { 0 };
        }
        let real = i32::from(self.real);
        let on = socket.as_ref().map_or(-1, |s| s.queue);
        if on >= 0 && on < real && !packet.ooo_okay {
            return on as u16;
        }
        let class = self.class_of_priority[(packet.priority & 15) as usize];
        let mut queue = -1;
        if let Some(socket) = &socket
            && socket.rx_queue >= 0
        {
            queue = self.entry(Kind::RxQueues, socket.rx_queue as u32, class, packet.hash);
        }
        if queue < 0 {
            queue = self.entry(Kind::Cpus, packet.cpu, class, packet.hash);
        }
        if queue < 0 {
            queue = i32::from(self.by_hash(packet));
        }
        if let Some(socket) = socket
            && socket.queue != queue
            && socket.full
            && socket.route
        {
            socket.queue = queue;
        }
        if queue >= real {
            return 0;
        }
        queue as u16
    }
}
