//! When transmitted frames are completed: the ways, and what each asks of the card and of the driver.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long a ring stays empty before the card says so.
///
/// Longer than the host and a peer on the same network take to answer, so that a request and its
/// response cost no interrupt of their own; docs/completion-policies.md has the figures.
pub const HOLDOFF: Duration = Duration::from_micros(50);
/// How old a completion becomes that the card has not reported: the bound of the default policy.
pub const MAX_AGE: Duration = Duration::from_micros(200);
/// Frames of a coalesced interrupt.
pub const PACKETS: u16 = 32;
/// Frames from one marker to the next.
pub const MARK: u16 = 16;
/// The timer that the others fall back on: that of the driver of 2009 that they are taken from.
pub const PERIOD: Duration = Duration::from_millis(100);

/// When the frames of a transmit queue are completed: when the driver learns that the card has read
/// them, and when their senders get their bytes back.
///
/// Whatever the policy, completed frames are also taken back whenever something is sent, and a queue
/// that is full asks for an interrupt in the middle of what is outstanding. The memory of a frame is
/// never let go of before the card has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionPolicy {
    /// The card interrupts when the queue has run empty. Bounds nothing while it does not.
    RingEmpty,
    /// The card interrupts when the queue ran empty and stayed so, or when a completion is too old,
    /// whichever comes first. While a sender waits for its bytes, the driver also asks for an
    /// interrupt when as much is used as it needs to go on, so that nobody waits for the hold-off.
    RingEmptyHoldoff {
        /// How long the queue has to stay empty.
        holdoff: Duration,
        /// How old a completion may be, whatever happens meanwhile.
        max_age: Duration,
    },
    /// The card interrupts when three quarters of what is outstanding is used, counted anew with
    /// each burst that is sent. Any virtio device can.
    EventIdx,
    /// The card interrupts after so many frames, or when the oldest has waited so long.
    ///
    /// As long as the card has no counter for it, the driver places virtio's event index so many
    /// frames ahead, and the card's max-age is the timer.
    Coalesced {
        /// Frames, 1 to 32,767.
        packets: u16,
        /// Longest wait of the oldest.
        time: Duration,
    },
    /// The driver marks some frames, at whose completion the card interrupts; the driver's timer
    /// finds what comes behind the last of them.
    Marker {
        /// Every how many frames, at least 1.
        every: u16,
        /// The timer.
        period: Duration,
    },
    /// No interrupt: the driver looks when a timer says so.
    Timer {
        /// From a frame to the look.
        period: Duration,
    },
    /// A sender gets its bytes back when its frame is queued, so that nothing holds it but the size
    /// of the ring; the driver looks for completed frames when a timer says so.
    Orphan {
        /// From a frame to the look.
        period: Duration,
    },
    /// The same as long as at most half of the ring is taken; beyond, as with
    /// [`EventIdx`](CompletionPolicy::EventIdx).
    OrphanHalf {
        /// From a frame to the look, if all was given back when it was queued.
        period: Duration,
    },
}

/// Where the driver asks for an interrupt by virtio's own means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventRule {
    /// Nowhere.
    Never,
    /// When three quarters of what is outstanding are used.
    ThreeQuarters,
    /// So many frames after the last look.
    Ahead(u16),
    /// As three quarters, while senders wait for their bytes.
    WhileCharged,
}

/// When senders get their bytes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// When the card has read the frame.
    Used,
    /// When the frame is queued.
    Queued,
    /// When it is queued, if at most half of the ring is taken then.
    QueuedBelowHalf,
}

/// What a policy asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Hold-off of the card's ring-empty interrupt.
    pub holdoff: Option<Duration>,
    /// The card's max-age.
    pub max_age: Option<Duration>,
    /// Every how many frames one is marked.
    pub mark: Option<u16>,
    pub event: EventRule,
    /// Who waits for his bytes has an interrupt asked for, when what he needs should be used.
    pub demand: bool,
    /// The driver's own timer.
    pub timer: Option<Duration>,
    pub release: Release,
}

impl Rules {
    const NONE: Self = Self {
        holdoff: None,
        max_age: None,
        mark: None,
        event: EventRule::Never,
        demand: false,
        timer: None,
        release: Release::Used,
    };

    /// True if only a card with the ring-empty interrupt can.
    pub fn needs_card(&self) -> bool {
        self.holdoff.is_some() || self.max_age.is_some() || self.mark.is_some()
    }
}

impl CompletionPolicy {
    /// All of them, with the settings that figures are of.
    pub const ALL: [Self; 8] = [
        Self::RingEmpty,
        Self::DEFAULT,
        Self::EventIdx,
        Self::Coalesced {
            packets: PACKETS,
            time: MAX_AGE,
        },
        Self::Marker {
            every: MARK,
            period: PERIOD,
        },
        Self::Timer { period: PERIOD },
        Self::Orphan { period: PERIOD },
        Self::OrphanHalf { period: PERIOD },
    ];

    /// The default: [`HOLDOFF`] and [`MAX_AGE`].
    pub const DEFAULT: Self = Self::RingEmptyHoldoff {
        holdoff: HOLDOFF,
        max_age: MAX_AGE,
    };

    /// Its name in commands and figures.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RingEmpty => "ring-empty",
            Self::RingEmptyHoldoff { .. } => "ring-empty-holdoff",
            Self::EventIdx => "event-idx",
            Self::Coalesced { .. } => "coalesced",
            Self::Marker { .. } => "marker",
            Self::Timer { .. } => "timer",
            Self::Orphan { .. } => "orphan",
            Self::OrphanHalf { .. } => "orphan-half",
        }
    }

    pub(crate) const fn rules(&self) -> Rules {
        let none = Rules::NONE;
        match *self {
            Self::RingEmpty => Rules {
                holdoff: Some(Duration::ZERO),
                ..none
            },
            Self::RingEmptyHoldoff { holdoff, max_age } => Rules {
                holdoff: Some(holdoff),
                max_age: Some(max_age),
                demand: true,
                ..none
            },
            Self::EventIdx => Rules {
                event: EventRule::ThreeQuarters,
                ..none
            },
            Self::Coalesced { packets, time } => Rules {
                event: EventRule::Ahead(packets),
                max_age: Some(time),
                ..none
            },
            Self::Marker { every, period } => Rules {
                mark: Some(every),
                timer: Some(period),
                ..none
            },
            Self::Timer { period } => Rules {
                timer: Some(period),
                ..none
            },
            Self::Orphan { period } => Rules {
                timer: Some(period),
                release: Release::Queued,
                ..none
            },
            Self::OrphanHalf { period } => Rules {
                event: EventRule::WhileCharged,
                timer: Some(period),
                release: Release::QueuedBelowHalf,
                ..none
            },
        }
    }
}

impl Default for CompletionPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for CompletionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CompletionPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|policy| policy.name() == text);
        known.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(Self::name).collect();
            format!("{text} is none of {}", names.join(", "))
        })
    }
}
