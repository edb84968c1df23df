//! PCIe transaction-layer packets: header fields, builders, byte enables.
//!
//! A header is four DWs as in the PCIe Base Specification, DW0 with `fmt` and `type` in bits
//! 31:24. Payload bytes are in memory order.

/// A header; DW3 is zero for headers of three DWs.
pub type Header = [u32; 4];

/// Bytes of framing, sequence number and LCRC that each TLP costs on the wire.
pub const WIRE_OVERHEAD: u64 = 8;

const FMT_DATA: u32 = 1 << 30;
const FMT_4DW: u32 = 1 << 29;
const EP: u32 = 1 << 14;
const TD: u32 = 1 << 15;

/// What a TLP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Memory read.
    MemRead,
    /// Memory write.
    MemWrite,
    /// Configuration read, type 0.
    CfgRead,
    /// Configuration write, type 0.
    CfgWrite,
    /// Completion without data.
    Completion,
    /// Completion with data.
    CompletionData,
    /// Anything else, by `fmt` and `type`.
    Other(u8),
}

/// The kind of a TLP.
pub fn kind(header: &Header) -> Kind {
    match (header[0] >> 24) as u8 {
        0x00 | 0x20 => Kind::MemRead,
        0x40 | 0x60 => Kind::MemWrite,
        0x04 => Kind::CfgRead,
        0x44 => Kind::CfgWrite,
        0x0a => Kind::Completion,
        0x4a => Kind::CompletionData,
        other => Kind::Other(other),
    }
}

/// True if the header has four DWs.
pub fn is_4dw(header: &Header) -> bool {
    header[0] & FMT_4DW != 0
}

/// Header bytes on the link.
pub fn header_bytes(header: &Header) -> u64 {
    if is_4dw(header) { 16 } else { 12 }
}

/// Length field in DWs; 0 in the field means 1,024.
pub fn length_dw(header: &Header) -> usize {
    match header[0] & 0x3ff {
        0 => 1024,
        n => n as usize,
    }
}

/// Payload bytes that follow the header (whole DWs).
pub fn payload_bytes(header: &Header) -> usize {
    if header[0] & FMT_DATA != 0 {
        length_dw(header) * 4
    } else {
        0
    }
}

/// Bytes on the wire: header, payload and 8 more; DLLPs are not counted.
pub fn wire_bytes(header: &Header) -> u64 {
    header_bytes(header) + payload_bytes(header) as u64 + WIRE_OVERHEAD
}

/// The poisoned bit.
pub fn is_poisoned(header: &Header) -> bool {
    header[0] & EP != 0
}

/// The digest bit.
pub fn has_digest(header: &Header) -> bool {
    header[0] & TD != 0
}

/// Marks the TLP as poisoned.
pub fn poison(header: &mut Header) {
    header[0] |= EP;
}

/// Requester of a request.
pub fn requester(header: &Header) -> u16 {
    (header[1] >> 16) as u16
}

/// Tag of a request.
pub fn request_tag(header: &Header) -> u8 {
    (header[1] >> 8) as u8
}

/// First and last byte enables of a request.
pub fn byte_enables(header: &Header) -> (u8, u8) {
    ((header[1] & 0xf) as u8, (header[1] >> 4 & 0xf) as u8)
}

/// Address of a memory request, of its first DW.
pub fn address(header: &Header) -> u64 {
    if is_4dw(header) {
        u64::from(header[2]) << 32 | u64::from(header[3] & !3)
    } else {
        u64::from(header[2] & !3)
    }
}

/// Completion: status (0 successful, 1 unsupported request, 4 completer abort).
pub fn completion_status(header: &Header) -> u8 {
    (header[1] >> 13 & 7) as u8
}

/// Completion: bytes left including this one; 0 in the field means 4,096.
pub fn completion_byte_count(header: &Header) -> usize {
    match header[1] & 0xfff {
        0 => 4096,
        n => n as usize,
    }
}

/// Completion: requester id.
pub fn completion_requester(header: &Header) -> u16 {
    (header[2] >> 16) as u16
}

/// Completion: tag.
pub fn completion_tag(header: &Header) -> u8 {
    (header[2] >> 8) as u8
}

/// Completion: lower address.
pub fn completion_lower_address(header: &Header) -> u8 {
    (header[2] & 0x7f) as u8
}

/// A memory request header; `addr` is that of the first DW.
pub fn memory(
    write: bool,
    addr: u64,
    length_dw: usize,
    (first_be, last_be): (u8, u8),
    requester: u16,
    tag: u8,
) -> Header {
    let mut dw0 = (length_dw & 0x3ff) as u32;
    if write {
        dw0 |= FMT_DATA;
    }
    let dw1 = u32::from(requester) << 16
        | u32::from(tag) << 8
        | u32::from(last_be) << 4
        | u32::from(first_be);
    let low = addr as u32 & !3;
    match (addr >> 32) as u32 {
        0 => [dw0, dw1, low, 0],
        high => [dw0 | FMT_4DW, dw1, high, low],
    }
}

/// A configuration request header (type 0); `offset` is that of the DW.
pub fn configuration(
    write: bool,
    target: u16,
    offset: u16,
    first_be: u8,
    requester: u16,
    tag: u8,
) -> Header {
    let fmt_type = if write { 0x44 } else { 0x04 };
    [
        fmt_type << 24 | 1,
        u32::from(requester) << 16 | u32::from(tag) << 8 | u32::from(first_be),
        u32::from(target) << 16 | u32::from(offset & 0xffc),
        0,
    ]
}

/// The fields of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionFields {
    /// Who completes.
    pub completer: u16,
    /// Who asked.
    pub requester: u16,
    /// Tag of the request.
    pub tag: u8,
    /// 0, 1 (UR) or 4 (CA).
    pub status: u8,
    /// Bytes left including this completion, 1 to 4,096.
    pub byte_count: usize,
    /// Bits 6:0 of the address of the first byte.
    pub lower_address: u8,
    /// DWs of payload; 0: completion without data.
    pub length_dw: usize,
}

/// A completion header.
pub fn completion(fields: &CompletionFields) -> Header {
    let fmt_type = if fields.length_dw == 0 { 0x0a } else { 0x4a };
    [
        fmt_type << 24 | (fields.length_dw & 0x3ff) as u32,
        u32::from(fields.completer) << 16
            | u32::from(fields.status & 7) << 13
            | (fields.byte_count & 0xfff) as u32,
        u32::from(fields.requester) << 16
            | u32::from(fields.tag) << 8
            | u32::from(fields.lower_address & 0x7f),
        0,
    ]
}

/// The DWs that bytes `addr..addr+len` touch and their byte enables: (address of the first DW,
/// DWs, (first, last)). `len` is at least 1.
pub fn cover(addr: u64, len: usize) -> (u64, usize, (u8, u8)) {
    let start = addr & !3;
    let skip = (addr & 3) as usize;
    let dws = (skip + len).div_ceil(4);
    let end = (skip + len) % 4;
    let first = 0xf_u8 << skip & 0xf;
    let last = if end == 0 { 0xf } else { 0xf >> (4 - end) };
    if dws == 1 {
        (start, 1, (first & last, 0))
    } else {
        (start, dws, (first, last))
    }
}

/// The bytes that a memory request asks for: (address of the first enabled byte, bytes from it to
/// the last enabled one). A request without any enabled byte ("flush") gives one byte.
pub fn enabled_span(header: &Header) -> (u64, usize) {
    let dws = length_dw(header);
    let (first, last) = byte_enables(header);
    let base = address(header);
    if dws == 1 {
        if first == 0 {
            return (base, 1);
        }
        let low = first.trailing_zeros() as usize;
        let high = 7 - first.leading_zeros() as usize;
        return (base + low as u64, high - low + 1);
    }
    let low = if first == 0 {
        0
    } else {
        first.trailing_zeros() as usize
    };
    let high = if last == 0 {
        3
    } else {
        7 - last.leading_zeros() as usize
    };
    (base + low as u64, (dws - 1) * 4 + high + 1 - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cover_gives_byte_enables_of_the_specification() {
        assert_eq!(cover(0x1000, 4), (0x1000, 1, (0xf, 0)));
        assert_eq!(cover(0x1001, 2), (0x1000, 1, (0x6, 0)));
        assert_eq!(cover(0x1003, 2), (0x1000, 2, (0x8, 0x1)));
        assert_eq!(cover(0x1002, 8), (0x1000, 3, (0xc, 0x3)));
        assert_eq!(cover(0x1000, 256), (0x1000, 64, (0xf, 0xf)));
    }

    #[test]
    fn enabled_span_inverts_cover() {
        for addr in 0x2000_u64..0x2008 {
            for len in 1..40 {
                let (start, dws, be) = cover(addr, len);
                let header = memory(false, start, dws, be, 0, 0);
                assert_eq!(enabled_span(&header), (addr, len), "{addr:#x} {len}");
            }
        }
        assert_eq!(
            enabled_span(&memory(false, 0x10, 1, (0, 0), 0, 0)),
            (0x10, 1)
        );
    }

    #[test]
    fn header_size_follows_the_address() {
        let low = memory(true, 0xffff_fffc, 1, (0xf, 0), 0x100, 0);
        let high = memory(true, 0x1_0000_0000, 1, (0xf, 0), 0x100, 0);
        assert_eq!(
            (kind(&low), is_4dw(&low), wire_bytes(&low)),
            (Kind::MemWrite, false, 24)
        );
        assert_eq!(
            (kind(&high), is_4dw(&high), wire_bytes(&high)),
            (Kind::MemWrite, true, 28)
        );
        assert_eq!(address(&high), 0x1_0000_0000);
    }

    #[test]
    fn completion_fields_come_back() {
        let header = completion(&CompletionFields {
            completer: 0x0008,
            requester: 0x0100,
            tag: 31,
            status: 0,
            byte_count: 4096,
            lower_address: 0x43,
            length_dw: 16,
        });
        assert_eq!(kind(&header), Kind::CompletionData);
        assert_eq!(completion_byte_count(&header), 4096);
        assert_eq!(completion_tag(&header), 31);
        assert_eq!(completion_requester(&header), 0x0100);
        assert_eq!(completion_lower_address(&header), 0x43);
        assert_eq!(payload_bytes(&header), 64);
    }
}
