//! Queue pairs on threads of their own.
//!
//! [`Workers::start`] moves each pair to a thread, with the interrupts of its queues, and binds the
//! thread to a CPU if it is asked to and may. Threads share nothing that any of them writes while
//! frames move: each has its queues, a [`Seat`] with counters that others can read, and a look at a
//! flag that is written once. What is the card's as a whole stays with the thread that has the
//! [`Device`].
//!
//! A thread that fails or panics stops the others; [`Workers::join`] waits for all of them, hands on a
//! panic, and otherwise gives what each has returned.

mod affinity;
mod published;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::device::{Device, Event, Wait, Waiter, Wake};
use crate::error::Error;
use crate::pci::PciError;
use crate::queue::{QueuePair, RxStats, TxStats};
use published::Published;

pub use affinity::{allowed_cpus, bind_to};

/// Where threads run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Where the kernel puts them.
    #[default]
    Free,
    /// Each on a CPU, in turn over those that the process may use.
    Spread,
    /// Each on one of these CPUs, in turn.
    Cpus(Vec<usize>),
}

impl Placement {
    /// The CPU of the n-th thread.
    fn of(&self, n: usize) -> Option<usize> {
        match self {
            Self::Free => None,
            Self::Spread => {
                let cpus = allowed_cpus();
                cpus.get(n % cpus.len().max(1)).copied()
            }
            Self::Cpus(cpus) => cpus.get(n % cpus.len().max(1)).copied(),
        }
    }
}

/// Read by every thread in every turn, so alone in its line; written once.
#[derive(Default)]
#[repr(align(64))]
struct Stop(AtomicBool);

const _: () = assert!(size_of::<Stop>() == 64 && align_of::<Stop>() == 64);

/// What a thread has beside its queues.
pub struct Seat {
    stop: Arc<Stop>,
    published: Arc<Published>,
    waiter: Option<Waiter>,
    cpu: Option<usize>,
}

impl Seat {
    /// True once the threads are to come to an end. Costs no more than a look at a line that nobody
    /// writes: for every burst.
    pub fn stopping(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    /// The CPU that the thread is bound to.
    pub fn cpu(&self) -> Option<usize> {
        self.cpu
    }

    /// Shows the counters of the pair to others, after a burst: they are copied to lines that only
    /// this thread writes.
    pub fn publish(&self, pair: &QueuePair) {
        self.published.set(&pair.rx.stats(), &pair.tx.stats());
    }
}

impl Wait for Seat {
    /// With [`Wakeup::Polled`](crate::Wakeup::Polled) there is nothing to wait for: it lets other threads
    /// run.
    fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error> {
        match &self.waiter {
            Some(waiter) => waiter.wait(timeout),
            None => {
                thread::yield_now();
                Ok(None)
            }
        }
    }

    fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Wake, Error> {
        match &self.waiter {
            Some(waiter) => waiter.wait_or(other, timeout),
            None => self.wait(timeout).map(|_| Wake::TimedOut),
        }
    }
}

/// Counters of a thread's queues, as of its last [`Seat::publish`]. Those of one moment are not
/// promised: a counter may be of one burst and the next of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Number of the pair.
    pub pair: u16,
    /// Of its receive queue.
    pub rx: RxStats,
    /// Of its transmit queue.
    pub tx: TxStats,
}

struct Thread<R, E> {
    pair: u16,
    published: Arc<Published>,
    handle: JoinHandle<Result<R, E>>,
}

/// Threads with a queue pair each; they are told to stop when this is dropped.
pub struct Workers<R, E> {
    stop: Arc<Stop>,
    threads: Vec<Thread<R, E>>,
    ended: Arc<OwnedFd>,
}

/// Tells of the end of a thread, however it comes.
struct Ending {
    stop: Arc<Stop>,
    ended: Arc<OwnedFd>,
    well: bool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.well {
            self.stop.0.store(true, Ordering::Relaxed);
        }
        // It cannot fail before 2^64 threads have ended.
        let _ = rustix::io::write(&*self.ended, &1u64.to_ne_bytes());
    }
}

impl<R: Send + 'static, E: Send + 'static> Workers<R, E> {
    /// Starts a thread for each pair, which runs what `make` returns for its number. With
    /// [`Wakeup::Interrupt`](crate::Wakeup::Interrupt) the device no longer reports the interrupts of
    /// these queues.
    ///
    /// A CPU that a thread may not have is told in the log, and the thread goes where the kernel puts
    /// it.
    ///
    /// # Errors
    /// [`PciError::Unsupported`] for a card in the same process that was opened with interrupts;
    /// [`PciError::Io`] if there can be no more threads. Nothing runs then.
    pub fn start<W>(
        device: &mut Device,
        pairs: Vec<QueuePair>,
        placement: &Placement,
        mut make: impl FnMut(u16) -> W,
    ) -> Result<Self, Error>
    where
        W: FnOnce(QueuePair, Seat) -> Result<R, E> + Send + 'static,
    {
        let ended = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| PciError::io("creating an eventfd", e))?;
        let mut this = Self {
            stop: Arc::default(),
            threads: Vec::new(),
            ended: Arc::new(ended),
        };
        for (n, pair) in pairs.into_iter().enumerate() {
            let waiter = device.take_waiter(pair.index)?;
            let cpu = placement.of(n);
            let work = make(pair.index);
            this.spawn(pair, waiter, cpu, work)?;
        }
        Ok(this)
    }

    fn spawn<W>(
        &mut self,
        pair: QueuePair,
        waiter: Option<Waiter>,
        cpu: Option<usize>,
        work: W,
    ) -> Result<(), Error>
    where
        W: FnOnce(QueuePair, Seat) -> Result<R, E> + Send + 'static,
    {
        let number = pair.index;
        let published = Arc::<Published>::default();
        let mut seat = Seat {
            stop: Arc::clone(&self.stop),
            published: Arc::clone(&published),
            waiter,
            cpu: None,
        };
        let mut ending = Ending {
            stop: Arc::clone(&self.stop),
            ended: Arc::clone(&self.ended),
            well: false,
        };
        let body = move || {
            seat.cpu = cpu.filter(|cpu| match bind_to(*cpu) {
                Ok(()) => true,
                Err(e) => {
                    log::warn!("queue pair {number}: not on CPU {cpu}: {e}");
                    false
                }
            });
            let result = work(pair, seat);
            ending.well = result.is_ok();
            drop(ending);
            result
        };
        let handle = thread::Builder::new()
            .name(format!("ferronic-q{number}"))
            .spawn(body)
            .map_err(|e| PciError::io("starting a thread for a queue pair", e))?;
        self.threads.push(Thread {
            pair: number,
            published,
            handle,
        });
        Ok(())
    }

    /// Tells the threads to stop; each does when it next looks.
    pub fn stop(&self) {
        self.stop.0.store(true, Ordering::Relaxed);
    }

    /// Threads that have not come to their end.
    pub fn running(&self) -> usize {
        let running = self.threads.iter().filter(|t| !t.handle.is_finished());
        running.count()
    }

    /// Counters of all threads, which are not disturbed by it.
    pub fn stats(&self) -> Vec<WorkerStats> {
        let of = |thread: &Thread<R, E>| {
            let (rx, tx) = thread.published.get();
            let pair = thread.pair;
            WorkerStats { pair, rx, tx }
        };
        self.threads.iter().map(of).collect()
    }

    /// Waits for the end of all threads; what each returned, in the order of the pairs.
    ///
    /// # Panics
    /// As the first of them that did, when all have ended.
    pub fn join(mut self) -> Vec<Result<R, E>> {
        let mut panicked = None;
        let mut results = Vec::new();
        for thread in self.threads.drain(..) {
            match thread.handle.join() {
                Ok(result) => results.push(result),
                Err(panic) => {
                    panicked.get_or_insert(panic);
                }
            }
        }
        if let Some(panic) = panicked {
            std::panic::resume_unwind(panic);
        }
        results
    }
}

impl<R, E> Drop for Workers<R, E> {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // Its panic was printed; there is nobody left to hand it to.
            drop(thread.handle.join());
        }
    }
}

impl<R, E> AsFd for Workers<R, E> {
    /// Readable when a thread has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}
