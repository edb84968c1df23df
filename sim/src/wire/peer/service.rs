//! What the peer does with a TCP connection.

use sha2::{Digest, Sha256};
use smoltcp::socket::tcp::Socket;

use crate::rng::Rng;

/// Port of the echo.
pub(super) const ECHO: u16 = 7;
const SINK: u16 = 9;
const SOURCE: u16 = 19;
/// Bytes of the order that a source gets.
const ORDER: usize = 16;

/// What a connection is for, and how far it is.
pub(super) enum Service {
    Echo,
    Sink {
        bytes: u64,
        sum: Sha256,
        answered: bool,
    },
    Source {
        order: Vec<u8>,
        left: u64,
        rng: Rng,
        sum: Sha256,
        tail: Option<Vec<u8>>,
    },
}

impl Service {
    /// Ports of all services.
    pub const PORTS: [u16; 3] = [ECHO, SINK, SOURCE];

    /// The service at a port.
    pub fn new(port: u16) -> Self {
        match port {
            ECHO => Self::Echo,
            SINK => Self::Sink {
                bytes: 0,
                sum: Sha256::new(),
                answered: false,
            },
            _ => Self::Source {
                order: Vec::new(),
                left: 0,
                rng: Rng::new(0),
                sum: Sha256::new(),
                tail: None,
            },
        }
    }

    /// Moves data as far as the socket's buffers allow.
    pub fn serve(&mut self, socket: &mut Socket<'_>) {
        match self {
            Self::Echo => echo(socket),
            Self::Sink {
                bytes,
                sum,
                answered,
            } => {
                while socket.can_recv() {
                    let taken = socket.recv(|data| {
                        sum.update(&*data);
                        (data.len(), data.len())
                    });
                    match taken {
                        Ok(n) if n > 0 => *bytes += n as u64,
                        _ => break,
                    }
                }
                if !*answered && !socket.may_recv() && socket.may_send() {
                    let mut answer = bytes.to_be_bytes().to_vec();
                    answer.extend_from_slice(&std::mem::take(sum).finalize());
                    *answered = socket.send_slice(&answer) == Ok(answer.len());
                    socket.close();
                }
            }
            Self::Source {
                order,
                left,
                rng,
                sum,
                tail,
            } => {
                while order.len() < ORDER && socket.can_recv() {
                    let mut more = [0; ORDER];
                    let n = socket.recv_slice(&mut more[order.len()..]).unwrap_or(0);
                    if n == 0 {
                        break;
                    }
                    let from = order.len();
                    order.extend_from_slice(&more[from..from + n]);
                    if order.len() == ORDER {
                        *left = number(&order[..8]);
                        *rng = Rng::new(number(&order[8..]));
                    }
                }
                if order.len() < ORDER {
                    if !socket.may_recv() {
                        socket.close();
                    }
                    return;
                }
                while *left > 0 && socket.can_send() {
                    let sent = socket.send(|room| {
                        // In whole words, so that the bytes do not depend on the room there was.
                        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(room.len());
                        let n = if most as u64 == *left {
                            most
                        } else {
                            most & !7
                        };
                        for word in room[..n].chunks_mut(8) {
                            let bytes = rng.next_u64().to_le_bytes();
                            word.copy_from_slice(&bytes[..word.len()]);
                        }
                        sum.update(&room[..n]);
                        (n, n)
                    });
                    match sent {
                        Ok(n) if n > 0 => *left -= n as u64,
                        _ => break,
                    }
                }
                if *left == 0 {
                    let tail = tail.get_or_insert_with(|| std::mem::take(sum).finalize().to_vec());
                    let n = socket.send_slice(tail).unwrap_or(0);
                    tail.drain(..n);
                    if tail.is_empty() {
                        socket.close();
                    }
                }
            }
        }
    }
}

fn echo(socket: &mut Socket<'_>) {
    while socket.can_recv() && socket.can_send() {
        let mut piece = [0; 2048];
        let room = socket.send_capacity() - socket.send_queue();
        let most = room.min(piece.len());
        let n = socket.recv_slice(&mut piece[..most]).unwrap_or(0);
        if n == 0 || socket.send_slice(&piece[..n]) != Ok(n) {
            break;
        }
    }
    if !socket.may_recv() && socket.recv_queue() == 0 {
        socket.close();
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}
