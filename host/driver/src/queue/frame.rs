//! A received frame, as a queue hands it out.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use ferronic_spec::NetHeader;
use ferronic_spec::net::{HEADER_LEN, HeaderFlags};
use zerocopy::IntoBytes;

use super::rx::{RxQueue, says_verified};
use crate::gro::Verified;
use crate::offload::{self, Admitted, Refused, UnitFault};

/// What a header claims of merging, and whether it is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing.
    None,
    /// It is a unit, and these are the bytes of its headers.
    Unit(u16),
    /// It is called a unit and is none.
    False(UnitFault),
}

/// A received frame, still in its DMA buffers.
pub struct RxFrame<'a> {
    pub(super) queue: &'a RxQueue,
    pub(super) header: NetHeader,
    pub(super) len: usize,
    pub(super) verified: Verified,
    pub(super) unit: Claim,
}

impl RxFrame<'_> {
    /// The virtio header: as the device wrote it, or of the unit that frames were merged into.
    pub fn header(&self) -> NetHeader {
        self.header
    }

    /// The device says that it has verified the frame's TCP or UDP checksum (and an IPv4 header's),
    /// and may say so (virtio 1.2, "Processing of Incoming Packets"). If false, nothing is known:
    /// verify before use.
    pub fn is_verified(&self) -> bool {
        match self.verified {
            Verified::Device => {
                self.unit == Claim::None
                    && self.queue.options.guest_csum
                    && says_verified(&self.header)
            }
            Verified::Here => true,
            Verified::Unit => false,
        }
    }

    /// It is a unit of several TCP segments, merged by the card or here, whose checksums were
    /// verified before. Its own is partial (NEEDS_CSUM): a stack that verifies nothing may take it
    /// as it is. False if the card calls a unit what cannot be one ([`offload::check_unit`]).
    pub fn is_unit(&self) -> bool {
        matches!(self.unit, Claim::Unit(_))
    }

    /// The card merged it: a unit that is not of the driver's making.
    pub fn is_merged_by_card(&self) -> bool {
        self.is_unit() && self.verified == Verified::Device
    }

    /// The flags of the header mean something.
    fn flags_count(&self) -> bool {
        self.verified == Verified::Unit || self.queue.options.guest_csum
    }

    /// Decides whether `bytes`, a copy of this frame, may be passed to a stack that verifies nothing
    /// itself, and completes its checksum if the card left it partial; see [`offload::admit`].
    ///
    /// # Errors
    /// When the frame must be dropped.
    pub fn admit(&self, bytes: &mut [u8]) -> Result<Admitted, Refused> {
        if self.verified == Verified::Here {
            return Ok(Admitted::Verified);
        }
        if let Claim::False(fault) = self.unit {
            return Err(Refused::Unit(fault));
        }
        offload::admit(&self.header, self.flags_count(), bytes)
    }

    /// Bytes of the frame, without the virtio header.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: a frame has at least an Ethernet header.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Buffers that the frame spans.
    pub fn num_buffers(&self) -> u16 {
        self.queue.parts.len() as u16
    }

    /// Bytes that the device wrote into each buffer, headers included.
    pub fn buffer_lens(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.parts.iter().map(|part| part.len)
    }

    /// Queue pair that received it.
    pub fn pair(&self) -> u16 {
        self.queue.pair
    }

    /// Appends the frame to `out`.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len);
        for part in &self.queue.parts {
            let skip = usize::from(part.skip);
            // Never more than the card wrote: the headers of a segment lie in its first buffer.
            let len = (part.len as usize).saturating_sub(skip);
            // In range: `SplitQueue` checked the lengths against the buffers.
            let copied = self.queue.pool.append_to(part.buffer, skip, len, out);
            debug_assert!(copied.is_ok());
        }
    }

    /// The virtio header with which a host's stack may take the frame: what the device wrote as far
    /// as it may say it and it is right, and nothing of what the device alone knows.
    ///
    /// # Errors
    /// When the frame must be dropped.
    pub fn host_header(&self) -> Result<NetHeader, Refused> {
        let none = NetHeader::default();
        match self.unit {
            Claim::Unit(headers) => {
                return Ok(NetHeader {
                    flags: HeaderFlags::NEEDS_CSUM.bits(),
                    hdr_len: headers.into(),
                    num_buffers: 0.into(),
                    ..self.header
                });
            }
            Claim::False(fault) => return Err(Refused::Unit(fault)),
            Claim::None => {}
        }
        let flags = HeaderFlags::from_bits_retain(self.header.flags);
        if self.verified != Verified::Here
            && self.flags_count()
            && flags.contains(HeaderFlags::NEEDS_CSUM)
        {
            let (start, offset) = (self.header.csum_start, self.header.csum_offset);
            if usize::from(start.get()) + usize::from(offset.get()) + 2 > self.len {
                return Err(Refused::Outside {
                    start: start.get(),
                    offset: offset.get(),
                    len: self.len,
                });
            }
            return Ok(NetHeader {
                flags: HeaderFlags::NEEDS_CSUM.bits(),
                csum_start: start,
                csum_offset: offset,
                ..none
            });
        }
        let known = self.is_verified();
        Ok(NetHeader {
            flags: if known {
                HeaderFlags::DATA_VALID.bits()
            } else {
                0
            },
            ..none
        })
    }

    /// Writes `header` and the frame with one call, from the memory in which the card put it.
    ///
    /// # Errors
    /// As `writev`; also if not everything was taken.
    pub fn write_to(&self, fd: impl AsFd, header: &NetHeader) -> io::Result<()> {
        let header = header.as_bytes();
        let mut vectors = Vec::with_capacity(1 + self.queue.parts.len());
        vectors.push(libc::iovec {
            iov_base: header.as_ptr().cast_mut().cast(),
            iov_len: header.len(),
        });
        for part in &self.queue.parts {
            let skip = usize::from(part.skip);
            let len = (part.len as usize).saturating_sub(skip);
            let bytes = self.queue.pool.span(part.buffer, skip, len);
            vectors.push(libc::iovec {
                iov_base: bytes.map_err(io::Error::other)?.cast(),
                iov_len: len,
            });
        }
        let count = vectors.len().min(libc::c_int::MAX as usize) as libc::c_int;
        let fd = fd.as_fd();
        // SAFETY: `vectors` has `count` elements. The first names `header`, the others memory that
        // was checked to lie within that of the queue, which lives as long as `self`; the kernel
        // only reads it. The card may write there meanwhile, which changes what is written and
        // nothing else: there is no reference to those bytes.
        let written = unsafe { libc::writev(fd.as_raw_fd(), vectors.as_ptr(), count) };
        match usize::try_from(written) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(written) if written == HEADER_LEN + self.len => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}
