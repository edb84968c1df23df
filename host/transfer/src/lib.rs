//! Transfers whose bytes are checked by digest: what both ends say to each other.
//!
//! A sink takes everything; when the other end has sent all, it answers with the number of bytes that
//! it got and their SHA-256 ([`Answer`]). A source is told a number of bytes and a seed ([`order`]),
//! sends so many bytes, then their SHA-256 ([`Incoming`]).

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

mod pattern;

pub use pattern::{Pattern, Sum, hex};

/// Port of a sink.
pub const SINK: u16 = 9;
/// Port of a source.
pub const SOURCE: u16 = 19;

/// Bytes of a SHA-256.
pub const DIGEST: usize = 32;
/// Bytes of an order.
pub const ORDER: usize = 16;

/// What a source is told.
pub fn order(bytes: u64, seed: u64) -> [u8; ORDER] {
    let mut order = [0; ORDER];
    order[..8].copy_from_slice(&bytes.to_be_bytes());
    order[8..].copy_from_slice(&seed.to_be_bytes());
    order
}

/// What a sink says at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Bytes that it got.
    pub bytes: u64,
    /// Their SHA-256.
    pub digest: [u8; DIGEST],
}

impl Answer {
    /// Bytes of an answer.
    pub const LEN: usize = 8 + DIGEST;

    /// Reads an answer.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Self {
        let mut count = [0; 8];
        let mut digest = [0; DIGEST];
        count.copy_from_slice(&bytes[..8]);
        digest.copy_from_slice(&bytes[8..]);
        Self {
            bytes: u64::from_be_bytes(count),
            digest,
        }
    }
}

/// What comes from a source, in pieces of any size.
#[derive(Clone)]
pub struct Incoming {
    left: u64,
    sum: Sum,
    digest: Vec<u8>,
}

impl Incoming {
    /// So many bytes are to come.
    pub fn new(bytes: u64) -> Self {
        Self {
            left: bytes,
            sum: Sum::default(),
            digest: Vec::with_capacity(DIGEST),
        }
    }

    /// Takes a piece; how many of its bytes are data. What comes after the digest is nobody's.
    pub fn take(&mut self, piece: &[u8]) -> usize {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (data, rest) = piece.split_at(piece.len().min(most));
        self.sum.add(data);
        self.left -= data.len() as u64;
        let room = DIGEST - self.digest.len();
        self.digest.extend_from_slice(&rest[..rest.len().min(room)]);
        data.len()
    }

    /// Data and digest are there.
    pub fn is_whole(&self) -> bool {
        self.left == 0 && self.digest.len() == DIGEST
    }

    /// The digest that was sent, as far as it came, and that of what came, in hexadecimal.
    pub fn finish(self) -> (String, String) {
        (hex(&self.digest), hex(&self.sum.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incoming_does_not_depend_on_the_pieces_and_sees_a_changed_byte() {
        let mut data = vec![0; 1000];
        Pattern::new(3).fill(&mut data);
        let mut sum = Sum::default();
        sum.add(&data);
        let all = [&data[..], &sum.finish()].concat();
        for size in [1, 7, 999, 1000, 1001, 1032] {
            let mut incoming = Incoming::new(1000);
            let mut count = 0;
            for piece in all.chunks(size) {
                assert!(!incoming.is_whole(), "{size}");
                count += incoming.take(piece);
            }
            assert!(incoming.is_whole() && count == 1000, "{size}");
            let (sent, received) = incoming.finish();
            assert_eq!(sent, received, "{size}");
        }
        for at in [0, 999, 1000, 1031] {
            let mut changed = all.clone();
            changed[at] ^= 1;
            let mut incoming = Incoming::new(1000);
            incoming.take(&changed);
            let (sent, received) = incoming.finish();
            assert_ne!(sent, received, "{at}");
        }
    }

    #[test]
    fn messages_are_those_of_the_services() {
        assert_eq!(
            order(258, 3),
            [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3]
        );
        let mut bytes = [9; Answer::LEN];
        bytes[..8].copy_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2]);
        let answer = Answer::parse(&bytes);
        assert_eq!((answer.bytes, answer.digest), (258, [9; DIGEST]));
    }
}
