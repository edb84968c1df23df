//! The side that has the card.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;

use super::message::{Answer, Outcome, Question, Request};
use super::owner::{Owner, handle};
use super::{MAX_CLIENTS, MAX_REQUEST, OWNER, PATIENCE, VERSION, place};

/// A request under way, and who waits for the answer.
struct Job {
    request: Request,
    answer: SyncSender<Outcome>,
}

/// Jobs that wait: what the owner of the card looks at, in a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Waiting(AtomicUsize);

const _: () = assert!(size_of::<Waiting>() == 64);

/// The socket of a command that has a card. It goes with the value.
pub struct Control {
    waiting: Arc<Waiting>,
    /// None if there can be no socket.
    open: Option<Open>,
}

struct Open {
    jobs: Receiver<Job>,
    path: PathBuf,
    /// Which file it is: another command may have put its own there.
    inode: u64,
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// What the threads of the socket know.
struct Shared {
    card: String,
    command: &'static str,
    jobs: SyncSender<Job>,
    waiting: Arc<Waiting>,
    clients: AtomicUsize,
}

impl Control {
    /// Listens for settings of a card that this process has opened. What stands in the way is told in
    /// the log, and the command goes on without.
    pub fn offer(device: &str, command: &'static str) -> Self {
        let waiting = Arc::<Waiting>::default();
        let open = Open::start(device, command, &waiting)
            .inspect_err(|e| log::warn!("settings cannot be changed from outside: {e}"));
        Self {
            waiting,
            open: open.ok(),
        }
    }

    /// Does what is waiting, at most one request. Costs a look at one word if nothing is: for every
    /// burst.
    pub fn serve(&self, owner: &mut dyn Owner) {
        if self.waiting.0.load(Ordering::Relaxed) == 0 {
            return;
        }
        let job = self
            .open
            .as_ref()
            .and_then(|open| open.jobs.try_recv().ok());
        let Some(Job { request, answer }) = job else {
            return;
        };
        self.waiting.0.fetch_sub(1, Ordering::Relaxed);
        log::info!("control socket: {request:?}");
        let outcome = match handle(owner, &request) {
            Ok(state) => Outcome::Done(state),
            Err(e) => Outcome::Error(e.to_string()),
        };
        // There is room for one; who asked may be gone.
        let _ = answer.try_send(outcome);
    }
}

impl Open {
    fn start(device: &str, command: &'static str, waiting: &Arc<Waiting>) -> io::Result<Self> {
        let card = place::canonical(device);
        let path = place::socket_to_be(&card)?;
        let (listener, inode) = bind(&path)?;
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (sender, jobs) = sync_channel(MAX_CLIENTS);
        let shared = Arc::new(Shared {
            card,
            command,
            jobs: sender,
            waiting: Arc::clone(waiting),
            clients: AtomicUsize::new(0),
        });
        let ended = Arc::clone(&end);
        let thread = std::thread::Builder::new()
            .name("ferronic-control".into())
            .spawn(move || listen(&listener, &ended, &shared))?;
        Ok(Self {
            jobs,
            path,
            inode,
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // First the name, so that nobody comes to a socket that is not served.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket that only its user can connect to, in the place of a stale one: whoever left it cannot
/// have the card any more.
fn bind(path: &Path) -> io::Result<(UnixListener, u64)> {
    let fresh = path.with_extension(format!("{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh)?;
    let placed = fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))
        .and_then(|()| fs::symlink_metadata(&fresh))
        .and_then(|found| fs::rename(&fresh, path).map(|()| found.ino()));
    let inode = placed.inspect_err(|_| drop(fs::remove_file(&fresh)))?;
    listener.set_nonblocking(true)?;
    Ok((listener, inode))
}

fn listen(listener: &UnixListener, end: &OwnedFd, shared: &Arc<Shared>) {
    loop {
        let mut fds =
            [listener.as_fd(), end.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match poll(&mut fds, None) {
            Ok(_) if !fds[1].revents().is_empty() => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => {
                log::warn!("the control socket is given up: {e}");
                return;
            }
        }
        match listener.accept() {
            Ok((stream, _)) => welcome(stream, shared),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(e) => {
                // Out of descriptors, for instance: later, perhaps.
                log::warn!("a client of the control socket was not taken: {e}");
                std::thread::sleep(PATIENCE / 50);
            }
        }
    }
}

/// A client, on a thread of its own, if there are not too many.
fn welcome(stream: UnixStream, shared: &Arc<Shared>) {
    let _ = stream.set_nonblocking(false);
    if shared.clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
        shared.clients.fetch_sub(1, Ordering::Relaxed);
        let outcome = Outcome::Error(format!(
            "{MAX_CLIENTS} clients are being served already; try again"
        ));
        let _ = stream.set_nonblocking(true);
        let _ = (&stream).write_all(shared.line(outcome).as_bytes());
        return;
    }
    let leaving = Leaving(Arc::clone(shared));
    let spawned = std::thread::Builder::new()
        .name("ferronic-client".into())
        .spawn(move || leaving.0.client(&stream));
    if let Err(e) = spawned {
        log::warn!("a client of the control socket was not taken: {e}");
    }
}

/// Counts a client out, however it ends.
struct Leaving(Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn line(&self, outcome: Outcome) -> String {
        let answer = Answer {
            version: VERSION,
            command: self.command.to_owned(),
            pid: std::process::id(),
            outcome,
        };
        let text = serde_json::to_string(&answer);
        // It has no map with keys that are no text, nor anything else that can fail.
        text.unwrap_or_default() + "\n"
    }

    /// One request, one answer.
    fn client(&self, stream: &UnixStream) {
        let outcome = match self.question(stream) {
            Ok(request) => self.ask_owner(request),
            Err(Refused::Silent) => return,
            Err(Refused::Why(why)) => Outcome::Error(why),
        };
        let answer = self.line(outcome);
        let written = stream
            .set_write_timeout(Some(PATIENCE))
            .and_then(|()| { stream }.write_all(answer.as_bytes()));
        if let Err(e) = written {
            log::debug!("a client of the control socket took no answer: {e}");
        }
    }

    fn question(&self, stream: &UnixStream) -> Result<Request, Refused> {
        let peer = socket_peercred(stream).map_err(|_| Refused::Silent)?;
        let own = rustix::process::geteuid();
        if peer.uid != own && !peer.uid.is_root() {
            return Err(Refused::Why(format!(
                "the card is with user {}; only that user and root may ask",
                own.as_raw()
            )));
        }
        let line = read_line(stream)?;
        let question: Question = parse(&line)?;
        if question.device != self.card {
            return Err(Refused::Why(format!(
                "this command has the card {}, not {}",
                self.card, question.device
            )));
        }
        Ok(question.request)
    }

    fn ask_owner(&self, request: Request) -> Outcome {
        let (answer, answered) = sync_channel(1);
        if self.jobs.try_send(Job { request, answer }).is_err() {
            return Outcome::Error(
                "the command is ending, or has too much to do; try again".into(),
            );
        }
        self.waiting.0.fetch_add(1, Ordering::Relaxed);
        answered.recv_timeout(OWNER).unwrap_or_else(|_| {
            Outcome::Error(
                "the command is ending, or did not come to it in time; see its state with `show`"
                    .into(),
            )
        })
    }
}

/// Why a request is not looked at.
enum Refused {
    /// Nobody is there to be told.
    Silent,
    /// To be told.
    Why(String),
}

/// The version first: of another one nothing else is understood.
fn parse(line: &[u8]) -> Result<Question, Refused> {
    let value: serde_json::Value = serde_json::from_slice(line)
        .map_err(|e| Refused::Why(format!("the request is no line of JSON: {e}")))?;
    if let Some(version) = value.get("version").and_then(serde_json::Value::as_u64)
        && version != u64::from(VERSION)
    {
        return Err(Refused::Why(format!(
            "this command knows version {VERSION} of the control socket, not {version}; use a \
             command of the same release"
        )));
    }
    serde_json::from_value(value)
        .map_err(|e| Refused::Why(format!("the request is not understood: {e}")))
}

/// A line of at most [`MAX_REQUEST`] bytes that comes within [`PATIENCE`].
fn read_line(mut stream: &UnixStream) -> Result<Vec<u8>, Refused> {
    let start = Instant::now();
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(Refused::Why(format!(
                "no whole line came within {PATIENCE:?}"
            )));
        }
        let count = match stream.read(&mut piece) {
            Ok(0) => return Err(Refused::Silent),
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            // Looked at again above.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                continue;
            }
            Err(_) => return Err(Refused::Silent),
        };
        let end = piece[..count].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&piece[..end.unwrap_or(count)]);
        if line.len() > MAX_REQUEST {
            return Err(Refused::Why(format!(
                "the request is longer than {MAX_REQUEST} bytes"
            )));
        }
        if end.is_some() {
            return Ok(line);
        }
    }
}
