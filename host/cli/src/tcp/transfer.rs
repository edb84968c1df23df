//! A transfer on a socket, and its check.

use ferronic_transfer::{Answer, Incoming, Pattern, Sum, hex, order};
use smoltcp::socket::tcp::Socket;

use super::Direction;

/// What both ends say of the bytes; SHA-256 in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Bytes that arrived.
    pub bytes: u64,
    /// Of what was sent.
    pub sent: String,
    /// Of what arrived.
    pub received: String,
}

/// How far a transfer is.
pub enum Transfer {
    /// To a sink.
    Send {
        pattern: Pattern,
        sum: Sum,
        total: u64,
        left: u64,
        answer: Vec<u8>,
    },
    /// From a source.
    Receive {
        order: Vec<u8>,
        incoming: Incoming,
        passed: u64,
    },
}

impl Transfer {
    /// A transfer of so many bytes that `seed` determines.
    pub fn new(direction: Direction, bytes: u64, seed: u64) -> Self {
        match direction {
            Direction::Send => Self::Send {
                pattern: Pattern::new(seed),
                sum: Sum::default(),
                total: bytes,
                left: bytes,
                answer: Vec::with_capacity(Answer::LEN),
            },
            Direction::Receive => Self::Receive {
                order: order(bytes, seed).to_vec(),
                incoming: Incoming::new(bytes),
                passed: 0,
            },
        }
    }

    /// Bytes that were given to the stack, or taken from it.
    pub fn passed(&self) -> u64 {
        match self {
            Self::Send { total, left, .. } => total - left,
            Self::Receive { passed, .. } => *passed,
        }
    }

    /// Moves as much as the socket's buffers allow. Its errors are states that the caller sees.
    pub fn turn(&mut self, socket: &mut Socket<'_>) {
        match self {
            Self::Send {
                pattern,
                sum,
                left,
                answer,
                ..
            } => {
                while *left > 0 && socket.can_send() {
                    let sent = socket.send(|room| {
                        let most = usize::try_from(*left).unwrap_or(usize::MAX);
                        let n = most.min(room.len());
                        pattern.fill(&mut room[..n]);
                        sum.add(&room[..n]);
                        (n, n)
                    });
                    match sent {
                        Ok(n) if n > 0 => *left -= n as u64,
                        _ => break,
                    }
                }
                if *left == 0 {
                    // Only its own half: the answer is to come. Once closed, it does nothing.
                    socket.close();
                }
                take(socket, |data| {
                    let room = Answer::LEN - answer.len();
                    answer.extend_from_slice(&data[..data.len().min(room)]);
                });
            }
            Self::Receive {
                order,
                incoming,
                passed,
            } => {
                if !order.is_empty() {
                    let n = socket.send_slice(order).unwrap_or(0);
                    order.drain(..n);
                }
                take(socket, |data| *passed += incoming.take(data) as u64);
            }
        }
    }

    /// What both ends say, once all is there.
    pub fn checked(&self) -> Option<Checked> {
        match self {
            Self::Send { sum, answer, .. } => {
                let answer = Answer::parse(answer.as_slice().try_into().ok()?);
                Some(Checked {
                    bytes: answer.bytes,
                    sent: hex(&sum.clone().finish()),
                    received: hex(&answer.digest),
                })
            }
            Self::Receive {
                incoming, passed, ..
            } => incoming.is_whole().then(|| {
                let (sent, received) = incoming.clone().finish();
                Checked {
                    bytes: *passed,
                    sent,
                    received,
                }
            }),
        }
    }
}

/// Takes everything that has come.
fn take(socket: &mut Socket<'_>, mut each: impl FnMut(&[u8])) {
    while socket.can_recv() {
        let taken = socket.recv(|data| {
            each(data);
            (data.len(), data.len())
        });
        if !matches!(taken, Ok(n) if n > 0) {
            break;
        }
    }
}
