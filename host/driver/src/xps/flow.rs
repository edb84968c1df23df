//! What a sender keeps of its flow: the queue it is on, and how much of it is in flight.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::steering::{Packet, Pick, View};

/// What steering remembers of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    queue: Option<u16>,
    rx_queue: Option<u16>,
    whole: bool,
    route: bool,
}

impl Default for Socket {
    fn default() -> Self {
        Self::new()
    }
}

impl Socket {
    /// A connected socket with a route, on no queue yet.
    pub fn new() -> Self {
        Self {
            queue: None,
            rx_queue: None,
            whole: true,
            route: true,
        }
    }

    /// A socket that is only half there, such as that of a connection which is being opened: it never
    /// remembers a queue, so that its packets may overtake each other when the sender moves.
    pub fn partial() -> Self {
        Self {
            whole: false,
            ..Self::new()
        }
    }

    /// The queue that it remembers.
    pub fn queue(&self) -> Option<u16> {
        self.queue
    }

    /// The receive queue on which its last packet came.
    pub fn rx_queue(&self) -> Option<u16> {
        self.rx_queue
    }

    /// Notes the receive queue of a packet that came for it; `None` forgets it.
    pub fn record_rx(&mut self, queue: Option<u16>) {
        self.rx_queue = queue;
    }

    /// Says that it has a route, or that it has lost it: then it forgets its queue and remembers none.
    pub fn set_route(&mut self, route: bool) {
        self.route = route;
        if !route {
            self.queue = None;
        }
    }

    /// Remembers a choice, as far as it may.
    pub(super) fn store(&mut self, queue: u16) {
        if self.whole && self.route && self.queue != Some(queue) {
            self.queue = Some(queue);
        }
    }
}

/// What packets in flight hold on to. Alone in its line, together with the count of those who do.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Anchor;

const _: () = assert!(align_of::<Anchor>() == 64);

/// A flow of packets that must not overtake each other, owned by the thread that sends it.
///
/// It changes its queue only when nothing of it is in flight: when every [`InFlight`] that
/// [`Flow::send`] gave was dropped, which whoever has the transmit queue does when *the card* has
/// completed the frame. When the sender's bytes are given back does not matter, so that a policy that
/// does so early ([`CompletionPolicy`](crate::CompletionPolicy)) reorders nothing.
#[derive(Debug)]
pub struct Flow {
    hash: u32,
    socket: Socket,
    /// Held by the flow and by each packet in flight; nobody else gets at it.
    anchor: Arc<Anchor>,
}

/// A packet of a flow that the card has not completed. Dropping it says that the card has, or that the
/// packet will never be sent.
#[derive(Debug)]
#[must_use = "dropping it says that the packet is not in flight"]
pub struct InFlight {
    _anchor: Arc<Anchor>,
}

impl Flow {
    /// A flow with this hash: 32 bits that are as good as random.
    pub fn new(hash: u32) -> Self {
        Self::of(hash, Socket::new())
    }

    /// A flow of this socket.
    pub fn of(hash: u32, socket: Socket) -> Self {
        Self {
            hash,
            socket,
            anchor: Arc::default(),
        }
    }

    /// Its hash.
    pub fn hash(&self) -> u32 {
        self.hash
    }

    /// What steering remembers of it.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// What steering remembers of it.
    pub fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> usize {
        let held = Arc::strong_count(&self.anchor);
        // Dropping a handle is a release: what was done before is done for who sees it dropped.
        fence(Ordering::Acquire);
        held - 1
    }

    /// Chooses a queue for a packet of the flow that is sent from this CPU, and counts the packet as
    /// in flight until what is returned with the queue is dropped. Of a packet that is cut into
    /// segments by software, each is one: only the first may find nothing in flight.
    pub fn send(&mut self, view: &View<'_>, cpu: u32, priority: u32) -> (Pick, InFlight) {
        let packet = Packet {
            cpu,
            priority,
            hash: self.hash,
            rx_queue: None,
            ooo_okay: self.in_flight() == 0,
        };
        let pick = view.pick(&packet, Some(&mut self.socket));
        let anchor = Arc::clone(&self.anchor);
        (pick, InFlight { _anchor: anchor })
    }
}
