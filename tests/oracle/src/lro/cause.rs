//! Why contexts close.

/// Why a context closed: a row of the rule table, or a limit of the card. Where several hold, it is
/// the first of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    // What is told by the arriving frame alone, about more than its own flow.
    /// Row 12, and IPv4 or IPv6 headers that are cut off or of an impossible length.
    Untrusted,
    /// Row 2: IPv4 options.
    IpOptions,
    /// Row 3: a fragment.
    Fragment,
    /// Row 9: an extension header of IPv6.
    Extension,
    /// Row 11: lengths that contradict each other.
    Malformed,

    // What is told by the arriving segment alone, about its flow.
    /// Row 10: bytes behind the packet.
    Trailer,
    /// Rows 13 and 14: the sum is wrong or was not verified.
    Sum,
    /// Row 15: a sum that verifies and that no sender writes.
    Canonical,
    /// Rows 19 to 21 and 23: FIN, SYN, RST, URG or CWR set, or ACK clear.
    Control,
    /// Row 29: no payload.
    Empty,
    /// The first buffer, or the first descriptor of it, has no room for the headers.
    FirstBuffer,

    // What is told by comparison with what is held.
    /// The flow comes to another queue now.
    Moved,
    /// It is another flow with the same tag.
    Tag,
    /// Row 16: MAC addresses.
    Mac,
    /// Row 7: type of service or traffic class.
    Class,
    /// Row 8: flow label.
    Label,
    /// Row 4: flags of the IPv4 header.
    DontFragment,
    /// Row 6: time to live or hop limit.
    Ttl,
    /// Rows 22 and 24: data offset, reserved flags, AE or ECE.
    Flags,
    /// Row 25: window.
    Window,
    /// Row 26: urgent pointer.
    Urgent,
    /// Rows 27 and 28: acknowledgement number.
    Ack,
    /// Rows 33 to 35: options.
    Options,
    /// Row 31: not the next sequence number.
    Sequence,
    /// Row 5: not the next identification, though the next sequence number.
    Id,
    /// Row 37: more payload than the first segment.
    Larger,
    /// Row 38: bytes of the packet.
    Length,
    /// Row 39: buffers of the unit.
    Buffers,

    // What ends a unit with the segment in it.
    /// Row 18: PSH.
    Push,
    /// Row 36: less payload than the first segment.
    Smaller,

    // What has nothing to do with the flow.
    /// Row 40: the oldest, as all contexts were taken.
    Evicted,
    /// Row 41: time since the last segment.
    Gap,
    /// Row 41: time since the first segment.
    Hold,
    /// Few buffers are posted.
    LowWater,
    /// A frame of the queue does not fit into what is posted.
    NoBuffer,
    /// Row 41: a setting changes, the queue or the link goes down.
    Stopped,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 36] = [
        Self::Untrusted,
        Self::IpOptions,
        Self::Fragment,
        Self::Extension,
        Self::Malformed,
        Self::Trailer,
        Self::Sum,
        Self::Canonical,
        Self::Control,
        Self::Empty,
        Self::FirstBuffer,
        Self::Moved,
        Self::Tag,
        Self::Mac,
        Self::Class,
        Self::Label,
        Self::DontFragment,
        Self::Ttl,
        Self::Flags,
        Self::Window,
        Self::Urgent,
        Self::Ack,
        Self::Options,
        Self::Sequence,
        Self::Id,
        Self::Larger,
        Self::Length,
        Self::Buffers,
        Self::Push,
        Self::Smaller,
        Self::Evicted,
        Self::Gap,
        Self::Hold,
        Self::LowWater,
        Self::NoBuffer,
        Self::Stopped,
    ];
}
