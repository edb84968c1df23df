//! The registers of Ferronic's own window: offsets in bytes from its base, and fields.
//!
//! Made from rtl/regs/ferronic_window.rdl by `cargo xtask regs`: change that file, not this one.

/// A field of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Position of the lowest bit.
    pub lsb: u32,
    /// Number of bits.
    pub width: u32,
}

impl Field {
    /// The bits of the register that belong to the field.
    pub const fn mask(self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.lsb
    }

    /// The field's value in `register`.
    pub const fn get(self, register: u32) -> u32 {
        (register & self.mask()) >> self.lsb
    }

    /// `register` with the field set to `value`; bits that do not fit are lost.
    pub const fn set(self, register: u32, value: u32) -> u32 {
        (register & !self.mask()) | ((value << self.lsb) & self.mask())
    }
}

/// What software may do with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only; writes are ignored.
    ReadOnly,
    /// Writes only; reads as 0.
    WriteOnly,
    /// Reads and writes.
    ReadWrite,
}

/// What the description says about one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name in the reference.
    pub name: &'static str,
    /// Byte offset from the base of the window.
    pub offset: u64,
    /// What software may do with it.
    pub access: Access,
    /// Its value after reset, if that does not depend on how the card was built.
    pub reset: Option<u32>,
    /// How many there are, one for each queue pair or the like.
    pub count: u64,
    /// How many bytes they are apart.
    pub stride: u64,
}

/// Where the window is in BAR0 of this card. Software takes the place from the DVSEC.
pub const BASE: u64 = 0x8000;
/// Size of the window in bytes.
pub const BYTES: u64 = 0x8000;

/// First word of the UUID f3770a1c-5e0d-4c1b-9a55-fe01f3770a1c: its first four bytes, the first of
/// them in bits 31:24. The DVSEC carries the same UUID.
pub const UUID0: u64 = 0x000;

/// Second word of the UUID.
pub const UUID1: u64 = 0x004;

/// Third word of the UUID.
pub const UUID2: u64 = 0x008;

/// Fourth word of the UUID.
pub const UUID3: u64 = 0x00c;

/// Version of this window. Software refuses a major version that it does not know, and may use a
/// minor version later than its own.
pub const VERSION: u64 = 0x010;
/// Field of [`VERSION`]. Changes when something is added.
pub const VERSION_MINOR: Field = Field { lsb: 0, width: 16 };
/// Field of [`VERSION`]. Changes when something is taken away or means something else.
pub const VERSION_MAJOR: Field = Field { lsb: 16, width: 16 };

/// What this card has of what the window can describe. A bit that is 0 means that the registers
/// named with it read 0 and ignore writes.
pub const FEATURES: u64 = 0x014;
/// Field of [`FEATURES`]. Per-queue counters: SNAPSHOT, SNAP_QUEUE and SNAP_PACKETS to
/// SNAP_INTERRUPTS.
pub const FEATURES_QUEUE_COUNTERS: Field = Field { lsb: 0, width: 1 };
/// Field of [`FEATURES`]. Time base: TIME_LO and TIME_HI.
pub const FEATURES_TIME_BASE: Field = Field { lsb: 1, width: 1 };
/// Field of [`FEATURES`]. PAIRS_IN_USE.
pub const FEATURES_PAIRS_IN_USE: Field = Field { lsb: 2, width: 1 };
/// Field of [`FEATURES`]. Large receive offload: the LRO_ registers.
pub const FEATURES_LRO: Field = Field { lsb: 3, width: 1 };
/// Field of [`FEATURES`]. Ring-empty interrupt, max-age and marker of transmit queues: the
/// TX_EMPTY_, TX_MAX_AGE, TX_MARKER and TX_IRQ_ registers.
pub const FEATURES_TX_EMPTY: Field = Field { lsb: 4, width: 1 };
/// Field of [`FEATURES`]. Steering of received frames by RSS and by the queue that transmits: the
/// RSS_, HASH_REPORT and RX_FOLLOW registers.
pub const FEATURES_STEERING: Field = Field { lsb: 5, width: 1 };
/// Field of [`FEATURES`]. Filters of received frames: the RX_FILTER, RX_ADDRESS and RX_VLAN
/// registers.
pub const FEATURES_FILTERS: Field = Field { lsb: 6, width: 1 };
/// Field of [`FEATURES`]. Coalescing of used buffer notifications: the COAL_ registers.
pub const FEATURES_COALESCING: Field = Field { lsb: 7, width: 1 };

/// How the card was built.
pub const CAPS: u64 = 0x018;
/// Field of [`CAPS`]. Queue pairs, a power of two from 1 to 64. Virtqueue 2i receives and 2i+1
/// transmits for pair i. Unit: pairs.
pub const CAPS_QUEUE_PAIRS: Field = Field { lsb: 0, width: 8 };
/// Field of [`CAPS`]. Width of the data path: 8, 16, 32 or 64. Unit: bytes.
pub const CAPS_DATA_BYTES: Field = Field { lsb: 8, width: 8 };

/// Frequency of the time base and of the data path. Unit: Hz.
pub const CLOCK_HZ: u64 = 0x01c;

/// Time base as of the last write to SNAPSHOT, bits 31:0: clock cycles since power-up, never reset.
/// Unit: cycles.
pub const TIME_LO: u64 = 0x020;

/// Time base as of the last write to SNAPSHOT, bits 63:32. Unit: cycles.
pub const TIME_HI: u64 = 0x024;

/// A write copies the counters of one virtqueue, the device counters and the time base into the
/// registers that say so, and is complete when the copy is: an access that follows sees all of it.
/// Reads 0.
pub const SNAPSHOT: u64 = 0x028;
/// Field of [`SNAPSHOT`]. Virtqueue, 0 to 2 * queue_pairs - 1; for a larger one the per-queue
/// registers read 0 afterwards.
pub const SNAPSHOT_QUEUE: Field = Field { lsb: 0, width: 7 };

/// Queue pairs that receive. Frames are spread over pairs 0 to value - 1 by a hash of the flow;
/// transmission may use every pair. With large receive offload a write is complete when what was
/// held has been delivered. Reset, FLR and virtio reset restore 1.
pub const PAIRS_IN_USE: u64 = 0x02c;
/// Field of [`PAIRS_IN_USE`]. 1 to queue_pairs; a write of another value is ignored. Unit: pairs.
pub const PAIRS_IN_USE_PAIRS: Field = Field { lsb: 0, width: 7 };

/// Whose counters SNAP_PACKETS to SNAP_INTERRUPTS are.
pub const SNAP_QUEUE: u64 = 0x030;
/// Field of [`SNAP_QUEUE`]. Virtqueue of the last snapshot.
pub const SNAP_QUEUE_QUEUE: Field = Field { lsb: 0, width: 7 };

/// Frames received into, or sent from, the virtqueue of the snapshot, bits 31:0. Dropped frames are
/// not in it. Unit: frames.
pub const SNAP_PACKETS_LO: u64 = 0x040;

/// Frames of the virtqueue, bits 63:32. Unit: frames.
pub const SNAP_PACKETS_HI: u64 = 0x044;

/// Bytes of those frames, without virtio header and FCS, bits 31:0. Unit: bytes.
pub const SNAP_BYTES_LO: u64 = 0x048;

/// Bytes of those frames, bits 63:32. Unit: bytes.
pub const SNAP_BYTES_HI: u64 = 0x04c;

/// Time base at the last frame of the virtqueue, bits 31:0; 0 if there was none since reset. Unit:
/// cycles.
pub const SNAP_STAMP_LO: u64 = 0x050;

/// Time base at the last frame of the virtqueue, bits 63:32. Unit: cycles.
pub const SNAP_STAMP_HI: u64 = 0x054;

/// Frames of this virtqueue that were dropped: on receive for want of a buffer, on transmit because
/// the buffer was not a frame. Wraps. Unit: frames.
pub const SNAP_DROPS: u64 = 0x058;

/// Interrupts that this virtqueue asked for, masked ones included. Wraps. Unit: interrupts.
pub const SNAP_INTERRUPTS: u64 = 0x05c;

/// Received frames of less than 14 bytes, dropped. Unit: frames.
pub const RX_SHORT: u64 = 0x080;

/// Received frames of more than 9,216 bytes, or more than the MTU that is offered allows, dropped.
/// Unit: frames.
pub const RX_LONG: u64 = 0x084;

/// Received frames that the MAC declared void, dropped. Unit: frames.
pub const RX_ABORT: u64 = 0x088;

/// Received frames dropped because their queue had no buffer, too small a buffer or was not
/// enabled. Unit: frames.
pub const RX_NO_BUFFER: u64 = 0x08c;

/// Received frames dropped because the frame FIFO was full. Unit: frames.
pub const RX_FIFO_FULL: u64 = 0x090;

/// Transmit buffers that held no frame: shorter than header and 14 bytes, longer than header and
/// 9,216 bytes, or with an offload that was not negotiated. Returned to the driver, not sent. Unit:
/// frames.
pub const TX_BAD_FRAME: u64 = 0x094;

/// Completions for a tag that was not outstanding, or of a length or byte count that does not fit
/// its request. Dropped. Unit: TLPs.
pub const PCIE_UNEXPECTED_CPL: u64 = 0x098;

/// Completions with a status other than successful: unsupported request or completer abort. Unit:
/// TLPs.
pub const PCIE_ERROR_CPL: u64 = 0x09c;

/// Completions whose data was marked as poisoned. Unit: TLPs.
pub const PCIE_POISONED: u64 = 0x0a0;

/// Reads that were given up because a completion did not come in time. Unit: reads.
pub const PCIE_TIMEOUT: u64 = 0x0a4;

/// Requests to the card that it does not support: completed with an error if they expect a
/// completion, else dropped. Unit: TLPs.
pub const PCIE_UNSUPPORTED_REQ: u64 = 0x0a8;

/// Faults in a ring or descriptor that stopped a virtqueue and set DEVICE_NEEDS_RESET. Unit:
/// faults.
pub const QUEUE_ERRORS: u64 = 0x0ac;

/// Received frames dropped because of their destination address or VLAN. Unit: frames.
pub const RX_FILTERED: u64 = 0x0b0;

/// How the card merges received TCP segments, as far as it was built.
pub const LRO_CAPS: u64 = 0x100;
/// Field of [`LRO_CAPS`]. Flows that can be held at once. Unit: flows.
pub const LRO_CAPS_CONTEXTS: Field = Field { lsb: 0, width: 16 };
/// Field of [`LRO_CAPS`]. Buffers that a merged packet takes at most. Unit: buffers.
pub const LRO_CAPS_MAX_BUFFERS: Field = Field { lsb: 16, width: 8 };

/// Rules by which segments are merged; nothing is merged either where GUEST_TSO4 or GUEST_TSO6 was
/// not negotiated for the IP version. Complete when what was held has been delivered. Reset, FLR
/// and virtio reset restore the default.
pub const LRO_PROFILE: u64 = 0x104;
/// Field of [`LRO_PROFILE`]. 0: nothing is merged. 1: strict, what was merged can be cut into the
/// same segments again. 2, if the card was built with it: relaxed, more is merged, and it cannot. A
/// write of another value is ignored.
pub const LRO_PROFILE_PROFILE: Field = Field { lsb: 0, width: 2 };

/// A merged packet is delivered when no segment has come for this long. Complete as LRO_PROFILE is,
/// and restored likewise.
pub const LRO_GAP: u64 = 0x108;
/// Field of [`LRO_GAP`]. 1 to 8,388,607; a write of another value is ignored. Unit: cycles.
pub const LRO_GAP_CYCLES: Field = Field { lsb: 0, width: 23 };

/// A merged packet is delivered when its first segment has waited for this long. Complete as
/// LRO_PROFILE is, and restored likewise.
pub const LRO_HOLD: u64 = 0x10c;
/// Field of [`LRO_HOLD`]. 1 to 8,388,607; a write of another value is ignored. Unit: cycles.
pub const LRO_HOLD_CYCLES: Field = Field { lsb: 0, width: 23 };

/// Largest merged packet, from its IP header on. A single frame may be longer. Complete as
/// LRO_PROFILE is, and restored likewise.
pub const LRO_MAX_BYTES: u64 = 0x110;
/// Field of [`LRO_MAX_BYTES`]. 576 to 65,535; a write of another value is ignored. Unit: bytes.
pub const LRO_MAX_BYTES_BYTES: Field = Field { lsb: 0, width: 16 };

/// With fewer buffers than this in its queue, a frame first delivers the oldest packet that is held
/// for that queue. Counted are the buffers that the card has fetched and not used, of which it
/// keeps up to 128 a queue. Complete as LRO_PROFILE is, and restored likewise.
pub const LRO_LOW_WATER: u64 = 0x114;
/// Field of [`LRO_LOW_WATER`]. 0 to 64, 0 for never; a write of another value is ignored. Unit:
/// buffers.
pub const LRO_LOW_WATER_BUFFERS: Field = Field { lsb: 0, width: 7 };

/// Packets that were held and delivered because a frame of its queue had an IPv4 header sum that is
/// wrong, so that it may be of any flow. Unit: packets.
pub const LRO_CLOSED_UNTRUSTED: u64 = 0x140;

/// Packets that were held and delivered because a frame between its addresses had IPv4 options.
/// Unit: packets.
pub const LRO_CLOSED_IP_OPTIONS: u64 = 0x144;

/// Packets that were held and delivered because a frame between its addresses was a fragment. Unit:
/// packets.
pub const LRO_CLOSED_FRAGMENT: u64 = 0x148;

/// Packets that were held and delivered because a frame between its addresses had IPv6 extension
/// headers. Unit: packets.
pub const LRO_CLOSED_EXTENSION: u64 = 0x14c;

/// Packets that were held and delivered because a frame between its addresses had lengths that
/// contradict each other. Unit: packets.
pub const LRO_CLOSED_MALFORMED: u64 = 0x150;

/// Packets that were held and delivered because a segment of its flow had bytes behind its packet.
/// Unit: packets.
pub const LRO_CLOSED_TRAILER: u64 = 0x154;

/// Packets that were held and delivered because the TCP checksum of a segment of its flow was
/// wrong, or not verified. Unit: packets.
pub const LRO_CLOSED_SUM: u64 = 0x158;

/// Packets that were held and delivered because the checksum of a segment of its flow was right,
/// but not the one that a sender computes. Unit: packets.
pub const LRO_CLOSED_CANONICAL: u64 = 0x15c;

/// Packets that were held and delivered because a segment of its flow had SYN, FIN, RST, URG or
/// CWR, or no ACK. Unit: packets.
pub const LRO_CLOSED_CONTROL: u64 = 0x160;

/// Packets that were held and delivered because a segment of its flow had no payload. Unit:
/// packets.
pub const LRO_CLOSED_EMPTY: u64 = 0x164;

/// Packets that were held and delivered because the headers of a segment of its flow did not fit
/// the first descriptor of a buffer. Unit: packets.
pub const LRO_CLOSED_FIRST_BUFFER: u64 = 0x168;

/// Packets that were held and delivered because its flow comes to another queue now. Unit: packets.
pub const LRO_CLOSED_MOVED: u64 = 0x16c;

/// Packets that were held and delivered because a header byte of the next segment differed that has
/// to be equal. Unit: packets.
pub const LRO_CLOSED_HEADER: u64 = 0x170;

/// Packets that were held and delivered because the next segment was not the one that follows.
/// Unit: packets.
pub const LRO_CLOSED_SEQUENCE: u64 = 0x174;

/// Packets that were held and delivered because the IPv4 identification of the next segment did not
/// follow. Unit: packets.
pub const LRO_CLOSED_ID: u64 = 0x178;

/// Packets that were held and delivered because the next segment was larger than the first. Unit:
/// packets.
pub const LRO_CLOSED_LARGER: u64 = 0x17c;

/// Packets that were held and delivered because with the next segment it would have been longer
/// than LRO_MAX_BYTES. Unit: packets.
pub const LRO_CLOSED_LENGTH: u64 = 0x180;

/// Packets that were held and delivered because with the next segment it would have taken too many
/// buffers, or its buffer could not be continued. Unit: packets.
pub const LRO_CLOSED_BUFFERS: u64 = 0x184;

/// Packets that were held and delivered because its last segment had PSH. Unit: packets.
pub const LRO_CLOSED_PUSH: u64 = 0x188;

/// Packets that were held and delivered because its last segment was smaller than the first. Unit:
/// packets.
pub const LRO_CLOSED_SMALLER: u64 = 0x18c;

/// Packets that were held and delivered because another flow needed its context. Unit: packets.
pub const LRO_CLOSED_EVICTED: u64 = 0x190;

/// Packets that were held and delivered because no segment came for LRO_GAP. Unit: packets.
pub const LRO_CLOSED_GAP: u64 = 0x194;

/// Packets that were held and delivered because its first segment had waited for LRO_HOLD. Unit:
/// packets.
pub const LRO_CLOSED_HOLD: u64 = 0x198;

/// Packets that were held and delivered because few buffers were left in its queue. Unit: packets.
pub const LRO_CLOSED_LOW_WATER: u64 = 0x19c;

/// Packets that were held and delivered because there was no buffer to continue it. Unit: packets.
pub const LRO_CLOSED_NO_BUFFER: u64 = 0x1a0;

/// Packets that were held and delivered because a setting was changed, or the link went down. Unit:
/// packets.
pub const LRO_CLOSED_STOPPED: u64 = 0x1a4;

/// Segments that began a packet to be held. Unit: segments.
pub const LRO_OPENED: u64 = 0x1b0;

/// Segments that were appended to a packet that was held. Unit: segments.
pub const LRO_MERGED: u64 = 0x1b4;

/// What the card has for receive-side scaling (virtio 1.2, "Receive-side scaling" of the network
/// device).
pub const RSS_CAPS: u64 = 0x200;
/// Field of [`RSS_CAPS`]. Entries of the indirection table at most. Unit: entries.
pub const RSS_CAPS_TABLE_ENTRIES: Field = Field { lsb: 0, width: 16 };
/// Field of [`RSS_CAPS`]. Bytes of the key, all of which are used. Unit: bytes.
pub const RSS_CAPS_KEY_BYTES: Field = Field { lsb: 16, width: 8 };
/// Field of [`RSS_CAPS`]. Hash types, by the bits of RSS_TYPES.
pub const RSS_CAPS_TYPES: Field = Field { lsb: 24, width: 6 };

/// Staged: of which frames a hash is computed. A frame's hash is over addresses and ports if its
/// TCP or UDP type is set, otherwise over addresses if its IP type is set, otherwise there is none.
/// Fragments and other protocols have no ports. IPv6 extension headers are passed over.
pub const RSS_TYPES: u64 = 0x204;
/// Field of [`RSS_TYPES`]. Bit 0: IPv4, 1: TCP over IPv4, 2: UDP over IPv4, 3: IPv6, 4: TCP over
/// IPv6, 5: UDP over IPv6, as hash_types of virtio.
pub const RSS_TYPES_TYPES: Field = Field { lsb: 0, width: 6 };

/// Staged: how many of the hash's lowest bits choose an entry of RSS_TABLE.
pub const RSS_TABLE_BITS: u64 = 0x208;
/// Field of [`RSS_TABLE_BITS`]. 0 to 7: a table of 1 to 128 entries. Unit: bits.
pub const RSS_TABLE_BITS_BITS: Field = Field { lsb: 0, width: 3 };

/// Staged: where frames without a hash go.
pub const RSS_UNCLASSIFIED: u64 = 0x20c;
/// Field of [`RSS_UNCLASSIFIED`]. Queue pair. If it is not among PAIRS_IN_USE, such frames go to
/// pair 0.
pub const RSS_UNCLASSIFIED_PAIR: Field = Field { lsb: 0, width: 6 };

/// Puts to use what is staged. Complete when what large receive offload held has been delivered.
/// Frames that wait in the card are steered by it, with the hash that they were given when they
/// came. Reset, FLR and virtio reset turn both off.
pub const RSS_APPLY: u64 = 0x210;
/// Field of [`RSS_APPLY`]. 1: hashes are computed, by the key and types that were staged.
pub const RSS_APPLY_HASH: Field = Field { lsb: 0, width: 1 };
/// Field of [`RSS_APPLY`]. 1: frames are steered by RSS_TABLE, or RSS_UNCLASSIFIED; only with
/// `hash`. A table entry that is not among PAIRS_IN_USE counts as pair 0.
pub const RSS_APPLY_STEER: Field = Field { lsb: 1, width: 1 };

/// Headers of 20 bytes in both directions, with hash_value and hash_report (virtio 1.2, "Hash
/// reporting for incoming packets"). A write after DRIVER_OK is ignored, and every write on a card
/// that cannot: this one cannot yet. Reset, FLR and virtio reset restore 0.
pub const HASH_REPORT: u64 = 0x214;
/// Field of [`HASH_REPORT`]. 1: headers have 20 bytes; hash_report is 0 for frames without a hash.
pub const HASH_REPORT_ENABLE: Field = Field { lsb: 0, width: 1 };

/// While frames are not steered by RSS_TABLE, those of a flow are received by the pair that last
/// transmitted to it; flows of which nothing was transmitted are spread by their hash. Complete
/// when what large receive offload held has been delivered. Reset, FLR and virtio reset restore the
/// default and forget all flows.
pub const RX_FOLLOW: u64 = 0x218;
/// Field of [`RX_FOLLOW`]. 1: on; 0: all flows are spread by their hash.
pub const RX_FOLLOW_ENABLE: Field = Field { lsb: 0, width: 1 };
/// Field of [`RX_FOLLOW`]. A flow of which nothing is transmitted for 2 to 3 periods of 2^n cycles
/// is forgotten: n, 10 to 40.
pub const RX_FOLLOW_PERIOD: Field = Field { lsb: 8, width: 6 };

/// Which received frames are taken; the others are dropped and counted in RX_FILTERED. The bits 0
/// to 5 are those of virtio's control of receive modes. Applies to frames that begin after the
/// write.
pub const RX_FILTER: u64 = 0x220;
/// Field of [`RX_FILTER`]. Every destination address is taken, whatever the other bits say.
pub const RX_FILTER_PROMISCUOUS: Field = Field { lsb: 0, width: 1 };
/// Field of [`RX_FILTER`]. Every multicast address is taken, except broadcast.
pub const RX_FILTER_ALL_MULTICAST: Field = Field { lsb: 1, width: 1 };
/// Field of [`RX_FILTER`]. Every unicast address is taken.
pub const RX_FILTER_ALL_UNICAST: Field = Field { lsb: 2, width: 1 };
/// Field of [`RX_FILTER`]. No multicast address is taken, except broadcast. Overrides bit 1.
pub const RX_FILTER_NO_MULTICAST: Field = Field { lsb: 3, width: 1 };
/// Field of [`RX_FILTER`]. No unicast address is taken. Overrides bit 2.
pub const RX_FILTER_NO_UNICAST: Field = Field { lsb: 4, width: 1 };
/// Field of [`RX_FILTER`]. Broadcast is not taken.
pub const RX_FILTER_NO_BROADCAST: Field = Field { lsb: 5, width: 1 };
/// Field of [`RX_FILTER`]. Of frames with a VLAN tag (8100) only those are taken whose identifier
/// is set in RX_VLAN.
pub const RX_FILTER_VLAN: Field = Field { lsb: 8, width: 1 };

/// What the filters have.
pub const RX_FILTER_CAPS: u64 = 0x224;
/// Field of [`RX_FILTER_CAPS`]. Number of RX_ADDRESS pairs. Unit: addresses.
pub const RX_FILTER_CAPS_ADDRESSES: Field = Field { lsb: 0, width: 8 };

/// Four bytes of the key, in their order, the first in bits 7:0: with the row k, bytes 4k to 4k +
/// 3. Staged.
pub const RSS_KEY: u64 = 0x240;
/// Bytes from one [`RSS_KEY`] to the next.
pub const RSS_KEY_STRIDE: u64 = 0x04;

/// Entry of the indirection table. Staged.
pub const RSS_TABLE: u64 = 0x400;
/// Bytes from one [`RSS_TABLE`] to the next.
pub const RSS_TABLE_STRIDE: u64 = 0x04;
/// Field of [`RSS_TABLE`]. Queue pair.
pub const RSS_TABLE_PAIR: Field = Field { lsb: 0, width: 6 };

/// A destination address that is taken, bytes 0 to 3, the first in bits 7:0. It is put to use by a
/// write of RX_ADDRESS_HI.
pub const RX_ADDRESS_LO: u64 = 0x600;
/// Bytes from one [`RX_ADDRESS_LO`] to the next.
pub const RX_ADDRESS_LO_STRIDE: u64 = 0x08;

/// Bytes 4 and 5 of the address. A write makes the row what this and the last write of any
/// RX_ADDRESS_LO say.
pub const RX_ADDRESS_HI: u64 = 0x604;
/// Bytes from one [`RX_ADDRESS_HI`] to the next.
pub const RX_ADDRESS_HI_STRIDE: u64 = 0x08;
/// Field of [`RX_ADDRESS_HI`]. Byte 4 in bits 7:0.
pub const RX_ADDRESS_HI_BYTES: Field = Field { lsb: 0, width: 16 };
/// Field of [`RX_ADDRESS_HI`]. 1: the row is used.
pub const RX_ADDRESS_HI_USED: Field = Field { lsb: 31, width: 1 };

/// VLAN identifiers that are taken: bit b of row k stands for 32k + b.
pub const RX_VLAN: u64 = 0x800;
/// Bytes from one [`RX_VLAN`] to the next.
pub const RX_VLAN_STRIDE: u64 = 0x04;

/// Interrupt of a transmit queue that ran empty: everything that it took is used, and a read of
/// avail.idx after that shows nothing more. It comes even while used buffer notifications are
/// suppressed, and only if something is used that no interrupt of the queue has reported. A write
/// while the queue is empty counts as becoming empty. Reset, FLR, virtio reset and RING_RESET
/// restore 0.
pub const TX_EMPTY: u64 = 0x1000;
/// Bytes from one [`TX_EMPTY`] to the next.
pub const TX_EMPTY_STRIDE: u64 = 0x20;
/// Field of [`TX_EMPTY`]. Hold-off: how long the queue has to stay empty; a post begins it anew.
/// Unit: cycles.
pub const TX_EMPTY_HOLDOFF: Field = Field { lsb: 0, width: 23 };
/// Field of [`TX_EMPTY`]. 1: the interrupt is on.
pub const TX_EMPTY_ENABLE: Field = Field { lsb: 31, width: 1 };

/// Interrupt of a transmit queue when its oldest used buffer that no interrupt of the queue has
/// reported is so old, whatever happens meanwhile, and even while used buffer notifications are
/// suppressed. Turned on, it begins to count what is unreported then. Reset, FLR, virtio reset and
/// RING_RESET restore 0.
pub const TX_MAX_AGE: u64 = 0x1004;
/// Bytes from one [`TX_MAX_AGE`] to the next.
pub const TX_MAX_AGE_STRIDE: u64 = 0x20;
/// Field of [`TX_MAX_AGE`]. Max-age; 0: off. Unit: cycles.
pub const TX_MAX_AGE_CYCLES: Field = Field { lsb: 0, width: 23 };

/// Interrupt at the completion of buffers that ask for it: those whose first descriptor has the
/// flag of TX_EMPTY_CAPS. While this is off the flag means nothing. Reset, FLR, virtio reset and
/// RING_RESET restore 0.
pub const TX_MARKER: u64 = 0x1008;
/// Bytes from one [`TX_MARKER`] to the next.
pub const TX_MARKER_STRIDE: u64 = 0x20;
/// Field of [`TX_MARKER`]. 1: markers are looked at.
pub const TX_MARKER_ENABLE: Field = Field { lsb: 0, width: 1 };

/// Interrupts of the transmit queue because it ran empty. Those that the driver asked for by
/// virtio's own means are in none of the TX_IRQ_ registers; SNAP_INTERRUPTS has all. Unit:
/// interrupts.
pub const TX_IRQ_EMPTY: u64 = 0x1010;
/// Bytes from one [`TX_IRQ_EMPTY`] to the next.
pub const TX_IRQ_EMPTY_STRIDE: u64 = 0x20;

/// Interrupts of the transmit queue by max-age. Unit: interrupts.
pub const TX_IRQ_MAX_AGE: u64 = 0x1014;
/// Bytes from one [`TX_IRQ_MAX_AGE`] to the next.
pub const TX_IRQ_MAX_AGE_STRIDE: u64 = 0x20;

/// Interrupts of the transmit queue by a marker. Unit: interrupts.
pub const TX_IRQ_MARKER: u64 = 0x1018;
/// Bytes from one [`TX_IRQ_MARKER`] to the next.
pub const TX_IRQ_MARKER_STRIDE: u64 = 0x20;

/// How often the hold-off was over and the read of avail.idx found that something had been posted,
/// so that no interrupt was due. Unit: times.
pub const TX_OVERTAKEN: u64 = 0x101c;
/// Bytes from one [`TX_OVERTAKEN`] to the next.
pub const TX_OVERTAKEN_STRIDE: u64 = 0x20;

/// How to ask for an interrupt at a buffer's completion.
pub const TX_EMPTY_CAPS: u64 = 0x1800;
/// Field of [`TX_EMPTY_CAPS`]. Number of the bit in the flags of a descriptor that marks it.
pub const TX_EMPTY_CAPS_MARKER_FLAG: Field = Field { lsb: 0, width: 4 };

/// Packets after which a notification is due. A change is looked at at once: with so many packets
/// waiting it is due. Virtio reset and FLR restore 0; a virtqueue that is enabled begins with
/// COAL_RX_PACKETS or COAL_TX_PACKETS.
pub const COAL_PACKETS: u64 = 0x2000;
/// Bytes from one [`COAL_PACKETS`] to the next.
pub const COAL_PACKETS_STRIDE: u64 = 0x08;
/// Field of [`COAL_PACKETS`]. 0: a notification is due after every packet. Unit: packets.
pub const COAL_PACKETS_PACKETS: Field = Field { lsb: 0, width: 16 };

/// Time after the first packet at which a notification is due; otherwise as COAL_PACKETS.
pub const COAL_TIME: u64 = 0x2004;
/// Bytes from one [`COAL_TIME`] to the next.
pub const COAL_TIME_STRIDE: u64 = 0x08;
/// Field of [`COAL_TIME`]. 0: a notification is due after every packet. Unit: cycles.
pub const COAL_TIME_CYCLES: Field = Field { lsb: 0, width: 23 };

/// A write sets COAL_PACKETS of every receive virtqueue, and of those that are enabled later.
/// Complete when it is done. Virtio reset and FLR restore 0.
pub const COAL_RX_PACKETS: u64 = 0x2400;
/// Field of [`COAL_RX_PACKETS`]. As COAL_PACKETS. Unit: packets.
pub const COAL_RX_PACKETS_PACKETS: Field = Field { lsb: 0, width: 16 };

/// COAL_TIME of every receive virtqueue, likewise.
pub const COAL_RX_TIME: u64 = 0x2404;
/// Field of [`COAL_RX_TIME`]. As COAL_TIME. Unit: cycles.
pub const COAL_RX_TIME_CYCLES: Field = Field { lsb: 0, width: 23 };

/// COAL_PACKETS of every transmit virtqueue, likewise.
pub const COAL_TX_PACKETS: u64 = 0x2408;
/// Field of [`COAL_TX_PACKETS`]. As COAL_PACKETS. Unit: packets.
pub const COAL_TX_PACKETS_PACKETS: Field = Field { lsb: 0, width: 16 };

/// COAL_TIME of every transmit virtqueue, likewise.
pub const COAL_TX_TIME: u64 = 0x240c;
/// Field of [`COAL_TX_TIME`]. As COAL_TIME. Unit: cycles.
pub const COAL_TX_TIME_CYCLES: Field = Field { lsb: 0, width: 23 };

/// Every register of the window, in order of offset.
pub const REGISTERS: &[Register] = &[
    Register {
        name: "UUID0",
        offset: UUID0,
        access: Access::ReadOnly,
        reset: Some(0xf3770a1c),
        count: 1,
        stride: 0,
    },
    Register {
        name: "UUID1",
        offset: UUID1,
        access: Access::ReadOnly,
        reset: Some(0x5e0d4c1b),
        count: 1,
        stride: 0,
    },
    Register {
        name: "UUID2",
        offset: UUID2,
        access: Access::ReadOnly,
        reset: Some(0x9a55fe01),
        count: 1,
        stride: 0,
    },
    Register {
        name: "UUID3",
        offset: UUID3,
        access: Access::ReadOnly,
        reset: Some(0xf3770a1c),
        count: 1,
        stride: 0,
    },
    Register {
        name: "VERSION",
        offset: VERSION,
        access: Access::ReadOnly,
        reset: Some(0x00000004),
        count: 1,
        stride: 0,
    },
    Register {
        name: "FEATURES",
        offset: FEATURES,
        access: Access::ReadOnly,
        reset: None,
        count: 1,
        stride: 0,
    },
    Register {
        name: "CAPS",
        offset: CAPS,
        access: Access::ReadOnly,
        reset: None,
        count: 1,
        stride: 0,
    },
    Register {
        name: "CLOCK_HZ",
        offset: CLOCK_HZ,
        access: Access::ReadOnly,
        reset: Some(0x07735940),
        count: 1,
        stride: 0,
    },
    Register {
        name: "TIME_LO",
        offset: TIME_LO,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "TIME_HI",
        offset: TIME_HI,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAPSHOT",
        offset: SNAPSHOT,
        access: Access::WriteOnly,
        reset: None,
        count: 1,
        stride: 0,
    },
    Register {
        name: "PAIRS_IN_USE",
        offset: PAIRS_IN_USE,
        access: Access::ReadWrite,
        reset: Some(0x00000001),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_QUEUE",
        offset: SNAP_QUEUE,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_PACKETS_LO",
        offset: SNAP_PACKETS_LO,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_PACKETS_HI",
        offset: SNAP_PACKETS_HI,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_BYTES_LO",
        offset: SNAP_BYTES_LO,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_BYTES_HI",
        offset: SNAP_BYTES_HI,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_STAMP_LO",
        offset: SNAP_STAMP_LO,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_STAMP_HI",
        offset: SNAP_STAMP_HI,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_DROPS",
        offset: SNAP_DROPS,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "SNAP_INTERRUPTS",
        offset: SNAP_INTERRUPTS,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_SHORT",
        offset: RX_SHORT,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_LONG",
        offset: RX_LONG,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_ABORT",
        offset: RX_ABORT,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_NO_BUFFER",
        offset: RX_NO_BUFFER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_FIFO_FULL",
        offset: RX_FIFO_FULL,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "TX_BAD_FRAME",
        offset: TX_BAD_FRAME,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "PCIE_UNEXPECTED_CPL",
        offset: PCIE_UNEXPECTED_CPL,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "PCIE_ERROR_CPL",
        offset: PCIE_ERROR_CPL,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "PCIE_POISONED",
        offset: PCIE_POISONED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "PCIE_TIMEOUT",
        offset: PCIE_TIMEOUT,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "PCIE_UNSUPPORTED_REQ",
        offset: PCIE_UNSUPPORTED_REQ,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "QUEUE_ERRORS",
        offset: QUEUE_ERRORS,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_FILTERED",
        offset: RX_FILTERED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CAPS",
        offset: LRO_CAPS,
        access: Access::ReadOnly,
        reset: None,
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_PROFILE",
        offset: LRO_PROFILE,
        access: Access::ReadWrite,
        reset: Some(0x00000001),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_GAP",
        offset: LRO_GAP,
        access: Access::ReadWrite,
        reset: Some(0x000030d4),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_HOLD",
        offset: LRO_HOLD,
        access: Access::ReadWrite,
        reset: Some(0x0000c350),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_MAX_BYTES",
        offset: LRO_MAX_BYTES,
        access: Access::ReadWrite,
        reset: Some(0x0000ffff),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_LOW_WATER",
        offset: LRO_LOW_WATER,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_UNTRUSTED",
        offset: LRO_CLOSED_UNTRUSTED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_IP_OPTIONS",
        offset: LRO_CLOSED_IP_OPTIONS,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_FRAGMENT",
        offset: LRO_CLOSED_FRAGMENT,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_EXTENSION",
        offset: LRO_CLOSED_EXTENSION,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_MALFORMED",
        offset: LRO_CLOSED_MALFORMED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_TRAILER",
        offset: LRO_CLOSED_TRAILER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_SUM",
        offset: LRO_CLOSED_SUM,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_CANONICAL",
        offset: LRO_CLOSED_CANONICAL,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_CONTROL",
        offset: LRO_CLOSED_CONTROL,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_EMPTY",
        offset: LRO_CLOSED_EMPTY,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_FIRST_BUFFER",
        offset: LRO_CLOSED_FIRST_BUFFER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_MOVED",
        offset: LRO_CLOSED_MOVED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_HEADER",
        offset: LRO_CLOSED_HEADER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_SEQUENCE",
        offset: LRO_CLOSED_SEQUENCE,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_ID",
        offset: LRO_CLOSED_ID,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_LARGER",
        offset: LRO_CLOSED_LARGER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_LENGTH",
        offset: LRO_CLOSED_LENGTH,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_BUFFERS",
        offset: LRO_CLOSED_BUFFERS,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_PUSH",
        offset: LRO_CLOSED_PUSH,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_SMALLER",
        offset: LRO_CLOSED_SMALLER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_EVICTED",
        offset: LRO_CLOSED_EVICTED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_GAP",
        offset: LRO_CLOSED_GAP,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_HOLD",
        offset: LRO_CLOSED_HOLD,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_LOW_WATER",
        offset: LRO_CLOSED_LOW_WATER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_NO_BUFFER",
        offset: LRO_CLOSED_NO_BUFFER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_CLOSED_STOPPED",
        offset: LRO_CLOSED_STOPPED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_OPENED",
        offset: LRO_OPENED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "LRO_MERGED",
        offset: LRO_MERGED,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RSS_CAPS",
        offset: RSS_CAPS,
        access: Access::ReadOnly,
        reset: Some(0x3f280080),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RSS_TYPES",
        offset: RSS_TYPES,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RSS_TABLE_BITS",
        offset: RSS_TABLE_BITS,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RSS_UNCLASSIFIED",
        offset: RSS_UNCLASSIFIED,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RSS_APPLY",
        offset: RSS_APPLY,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "HASH_REPORT",
        offset: HASH_REPORT,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_FOLLOW",
        offset: RX_FOLLOW,
        access: Access::ReadWrite,
        reset: Some(0x00001c01),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_FILTER",
        offset: RX_FILTER,
        access: Access::ReadWrite,
        reset: Some(0x00000001),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RX_FILTER_CAPS",
        offset: RX_FILTER_CAPS,
        access: Access::ReadOnly,
        reset: Some(0x00000010),
        count: 1,
        stride: 0,
    },
    Register {
        name: "RSS_KEY",
        offset: RSS_KEY,
        access: Access::WriteOnly,
        reset: None,
        count: 10,
        stride: 0x4,
    },
    Register {
        name: "RSS_TABLE",
        offset: RSS_TABLE,
        access: Access::WriteOnly,
        reset: None,
        count: 128,
        stride: 0x4,
    },
    Register {
        name: "RX_ADDRESS_LO",
        offset: RX_ADDRESS_LO,
        access: Access::WriteOnly,
        reset: None,
        count: 16,
        stride: 0x8,
    },
    Register {
        name: "RX_ADDRESS_HI",
        offset: RX_ADDRESS_HI,
        access: Access::WriteOnly,
        reset: None,
        count: 16,
        stride: 0x8,
    },
    Register {
        name: "RX_VLAN",
        offset: RX_VLAN,
        access: Access::WriteOnly,
        reset: None,
        count: 128,
        stride: 0x4,
    },
    Register {
        name: "TX_EMPTY",
        offset: TX_EMPTY,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_MAX_AGE",
        offset: TX_MAX_AGE,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_MARKER",
        offset: TX_MARKER,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_IRQ_EMPTY",
        offset: TX_IRQ_EMPTY,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_IRQ_MAX_AGE",
        offset: TX_IRQ_MAX_AGE,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_IRQ_MARKER",
        offset: TX_IRQ_MARKER,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_OVERTAKEN",
        offset: TX_OVERTAKEN,
        access: Access::ReadOnly,
        reset: Some(0x00000000),
        count: 64,
        stride: 0x20,
    },
    Register {
        name: "TX_EMPTY_CAPS",
        offset: TX_EMPTY_CAPS,
        access: Access::ReadOnly,
        reset: Some(0x0000000e),
        count: 1,
        stride: 0,
    },
    Register {
        name: "COAL_PACKETS",
        offset: COAL_PACKETS,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 128,
        stride: 0x8,
    },
    Register {
        name: "COAL_TIME",
        offset: COAL_TIME,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 128,
        stride: 0x8,
    },
    Register {
        name: "COAL_RX_PACKETS",
        offset: COAL_RX_PACKETS,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "COAL_RX_TIME",
        offset: COAL_RX_TIME,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "COAL_TX_PACKETS",
        offset: COAL_TX_PACKETS,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
    Register {
        name: "COAL_TX_TIME",
        offset: COAL_TX_TIME,
        access: Access::ReadWrite,
        reset: Some(0x00000000),
        count: 1,
        stride: 0,
    },
];
