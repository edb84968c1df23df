//! Transfers whose bytes are checked by digest, through the kernel's TCP.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use ferronic_guest_agent::Transfer;
use ferronic_transfer::{Answer, DIGEST, Incoming, Pattern, Sum, hex, order};

use crate::Failure;

/// How long a connection may make no progress.
const PATIENCE: Duration = Duration::from_secs(60);
const PIECE: usize = 64 * 1024;

/// Connections of transfers.
static CONNECTIONS: Mutex<Vec<Weak<TcpStream>>> = Mutex::new(Vec::new());

/// Breaks all connections.
pub fn disconnect() {
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    for stream in connections.drain(..).filter_map(|weak| weak.upgrade()) {
        // One that is being ended needs it no more.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn connect(to: IpAddr, port: u16) -> Result<Arc<TcpStream>, Failure> {
    let address = SocketAddr::new(to, port);
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let stream = Arc::new(stream);
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    connections.retain(|weak| weak.strong_count() > 0);
    connections.push(Arc::downgrade(&stream));
    Ok(stream)
}

/// Sends `bytes` of the pattern to a sink.
pub fn send(to: IpAddr, port: u16, bytes: u64, seed: u64) -> Result<Transfer, Failure> {
    let connection = connect(to, port)?;
    let mut stream = &*connection;
    let mut pattern = Pattern::new(seed);
    let mut sum = Sum::default();
    let mut piece = vec![0; PIECE];
    let mut left = bytes;
    // Computed before the clock runs: what is measured is the card, not this loop.
    let mut pieces = Vec::new();
    while left > 0 {
        let n = left.min(PIECE as u64) as usize;
        pattern.fill(&mut piece[..n]);
        sum.add(&piece[..n]);
        pieces.push(piece[..n].to_vec());
        left -= n as u64;
    }
    let begin = Instant::now();
    for piece in &pieces {
        stream.write_all(piece)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = [0; Answer::LEN];
    stream.read_exact(&mut answer)?;
    let seconds = begin.elapsed().as_secs_f64();
    let answer = Answer::parse(&answer);
    Ok(Transfer {
        bytes: answer.bytes,
        sent: hex(&sum.finish()),
        received: hex(&answer.digest),
        seconds,
    })
}

/// Takes `bytes` from a source.
pub fn receive(from: IpAddr, port: u16, bytes: u64, seed: u64) -> Result<Transfer, Failure> {
    let connection = connect(from, port)?;
    let mut stream = &*connection;
    let begin = Instant::now();
    stream.write_all(&order(bytes, seed))?;
    let mut data = Vec::with_capacity(usize::try_from(bytes)? + DIGEST);
    stream.take(bytes + DIGEST as u64).read_to_end(&mut data)?;
    let seconds = begin.elapsed().as_secs_f64();
    // Summed only now: what is measured is the card, not this.
    let mut incoming = Incoming::new(bytes);
    let bytes = incoming.take(&data) as u64;
    let (sent, received) = incoming.finish();
    Ok(Transfer {
        bytes,
        sent,
        received,
        seconds,
    })
}
