//! Feature bits ("Reserved Feature Bits" and "Network Device", "Feature bits").

use bitflags::bitflags;

bitflags! {
    /// Virtio feature bits that the card, the driver or their tests know by name.
    ///
    /// Bits without a name are kept, so that an offer can be shown as it was made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Features: u64 {
        /// The device completes checksums marked by the driver.
        const CSUM = 1 << 0;
        /// The driver takes frames whose checksums the device has verified, or left partial.
        const GUEST_CSUM = 1 << 1;
        /// The device offers a maximum MTU.
        const MTU = 1 << 3;
        /// The device has a MAC address of its own.
        const MAC = 1 << 5;
        /// The driver takes merged TCP over IPv4.
        const GUEST_TSO4 = 1 << 7;
        /// The driver takes merged TCP over IPv6.
        const GUEST_TSO6 = 1 << 8;
        /// The device segments TCP over IPv4.
        const HOST_TSO4 = 1 << 11;
        /// The device segments TCP over IPv6.
        const HOST_TSO6 = 1 << 12;
        /// The device segments TCP with the ECN bits set.
        const HOST_ECN = 1 << 13;
        /// A received frame may span several buffers.
        const MRG_RXBUF = 1 << 15;
        /// The link state is in the configuration space.
        const STATUS = 1 << 16;
        /// There is a control virtqueue.
        const CTRL_VQ = 1 << 17;
        /// There are several queue pairs, switched on by a control command.
        const MQ = 1 << 22;
        /// A buffer may be described by a table elsewhere in memory.
        const INDIRECT_DESC = 1 << 28;
        /// Notifications are asked for by ring index.
        const EVENT_IDX = 1 << 29;
        /// Virtio 1.0 or later.
        const VERSION_1 = 1 << 32;
        /// Addresses are translated by the platform.
        const ACCESS_PLATFORM = 1 << 33;
        /// Packed virtqueue layout.
        const RING_PACKED = 1 << 34;
        /// Buffers are used in the order they were made available.
        const IN_ORDER = 1 << 35;
        /// Memory accesses are ordered as the platform orders devices.
        const ORDER_PLATFORM = 1 << 36;
        /// The doorbell carries the available index.
        const NOTIFICATION_DATA = 1 << 38;
        /// Single queues can be reset.
        const RING_RESET = 1 << 40;
        /// The device segments UDP.
        const HOST_USO = 1 << 56;
        /// The hash of a received frame is in its header.
        const HASH_REPORT = 1 << 57;
        /// Receive side scaling.
        const RSS = 1 << 60;
        /// Speed and duplex are in the configuration space.
        const SPEED_DUPLEX = 1 << 63;

        const _ = !0;
    }
}

impl Features {
    /// Kinds of segmentation of transmitted frames.
    pub const HOST_SEGMENTATION: Self =
        Self::HOST_TSO4.union(Self::HOST_TSO6).union(Self::HOST_USO);

    /// Everything that the device may do to transmitted frames.
    pub const TX_OFFLOADS: Self = Self::CSUM
        .union(Self::HOST_SEGMENTATION)
        .union(Self::HOST_ECN);

    /// What large receive offload needs: merged TCP by either IP version.
    pub const LRO: Self = Self::GUEST_TSO4.union(Self::GUEST_TSO6);

    /// Without the features whose requirements are not among them ("Feature bit requirements" of
    /// the network device): segmentation needs CSUM, HOST_ECN needs segmentation of TCP, merged TCP
    /// needs GUEST_CSUM.
    #[must_use]
    pub fn with_requirements(self) -> Self {
        let mut features = self;
        if !features.contains(Self::CSUM) {
            features.remove(Self::HOST_SEGMENTATION);
        }
        if !features.intersects(Self::HOST_TSO4.union(Self::HOST_TSO6)) {
            features.remove(Self::HOST_ECN);
        }
        if !features.contains(Self::GUEST_CSUM) {
            features.remove(Self::LRO);
        }
        features
    }

    /// What the card can offer today; `MTU` only when a limit is configured. A card with large
    /// receive offload offers [`Features::LRO`] besides.
    pub const CARD: Self = Self::VERSION_1
        .union(Self::ACCESS_PLATFORM)
        .union(Self::ORDER_PLATFORM)
        .union(Self::INDIRECT_DESC)
        .union(Self::EVENT_IDX)
        .union(Self::RING_RESET)
        .union(Self::NOTIFICATION_DATA)
        .union(Self::MAC)
        .union(Self::STATUS)
        .union(Self::MTU)
        .union(Self::GUEST_CSUM)
        .union(Self::TX_OFFLOADS)
        .union(Self::SPEED_DUPLEX)
        .union(Self::MRG_RXBUF);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_without_what_they_require_are_left_out() {
        let all = Features::TX_OFFLOADS | Features::VERSION_1;
        assert_eq!(all.with_requirements(), all);
        let merging = Features::LRO | Features::GUEST_CSUM;
        assert_eq!(merging.with_requirements(), merging);
        assert_eq!(Features::LRO.with_requirements(), Features::empty());
        for (without, left) in [
            (Features::CSUM, Features::VERSION_1),
            (Features::HOST_TSO4, all - Features::HOST_TSO4),
            (
                Features::HOST_TSO4 | Features::HOST_TSO6,
                Features::VERSION_1 | Features::CSUM | Features::HOST_USO,
            ),
        ] {
            assert_eq!((all - without).with_requirements(), left, "{without:?}");
        }
    }
}
