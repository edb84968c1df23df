//! The loop that serves clients and runs the simulation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use super::connection::{Connection, Received};
use super::device::SimDevice;
use super::messages::MessageLog;
use super::session::Session;
use crate::sim::SimError;

/// Steps of the simulation between two looks at the socket.
const STEPS: usize = 32;

/// Why serving ended, or could not begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The socket cannot be made.
    #[error("the socket {path} cannot be created: {source}")]
    Socket {
        /// The path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Another server listens there.
    #[error("another process listens at {0}: stop it, or choose another --socket")]
    InUse(String),
    /// The path is taken by something else.
    #[error("{0} exists and is not a socket: choose another --socket")]
    NotASocket(String),
    /// The simulation failed.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Waiting for clients failed.
    #[error("waiting for events: {0}")]
    Wait(#[from] io::Error),
}

/// What the owner of the server wants between events.
pub trait Stop {
    /// Becomes readable when [`Stop::stop`] should be asked.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
    /// True: leave the loop. Called when the descriptor is readable.
    fn stop(&mut self, device: &mut SimDevice) -> bool;
}

struct Client {
    connection: Connection,
    session: Session,
}

/// The listening socket and the card behind it.
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    device: SimDevice,
    client: Option<Client>,
    once: bool,
    log: Option<MessageLog>,
}

impl Server {
    /// Listens at `path` (mode 0600); a socket there that nobody listens at is replaced.
    pub fn bind(path: &Path, device: SimDevice, once: bool) -> Result<Self, ServeError> {
        let name = path.display().to_string();
        let failed = |source| ServeError::Socket {
            path: name.clone(),
            source,
        };
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
            Ok(meta) => {
                use std::os::unix::fs::FileTypeExt;
                if !meta.file_type().is_socket() {
                    return Err(ServeError::NotASocket(name));
                }
                if UnixStream::connect(path).is_ok() {
                    return Err(ServeError::InUse(name));
                }
                std::fs::remove_file(path).map_err(failed)?;
            }
        }
        // The socket must never be reachable for others, not even for an instant.
        let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(mask);
        let listener = bound.map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_path_buf(),
            device,
            client: None,
            once,
            log: None,
        })
    }

    /// Writes every message down from now on.
    pub fn log_to(&mut self, log: MessageLog) {
        self.log = Some(log);
    }

    fn note(&mut self, text: &str) {
        log::info!("{text}");
        if let Some(log) = &mut self.log {
            log.note(self.device.sim().now(), text);
        }
    }

    /// The card.
    pub fn device_mut(&mut self) -> &mut SimDevice {
        &mut self.device
    }

    /// Serves until `stop` says so, or with `once` until the first client is gone.
    pub fn run(&mut self, stop: &mut dyn Stop) -> Result<(), ServeError> {
        loop {
            let asleep = self.client.is_none() || self.device.sim().is_waiting();
            let ready = self.wait(stop, asleep)?;
            if ready.stop && stop.stop(&mut self.device) {
                return Ok(());
            }
            if ready.wire
                && let Err(error) = self.device.sim_mut().poll_wire()
            {
                log::warn!("the wire failed: {error}");
                // Not again at once.
                std::thread::sleep(Duration::from_millis(10));
            }
            if ready.client {
                match &self.client {
                    None => self.accept()?,
                    Some(_) => {
                        if self.serve_client() {
                            self.client = None;
                            self.device.release()?;
                            self.note("the client is gone");
                            if self.once {
                                return Ok(());
                            }
                        }
                    }
                }
            }
            if let Some(error) = self.device.failure() {
                return Err(error.clone().into());
            }
            if self.client.is_some() {
                self.device.sim_mut().run_steps(STEPS)?;
                self.device.deliver_interrupts(self.log.as_mut());
            }
        }
    }

    fn accept(&mut self) -> Result<(), ServeError> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                self.note("a client connected");
                self.client = Some(Client {
                    connection: Connection::new(stream)?,
                    session: Session::new(),
                });
                Ok(())
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::ConnectionAborted
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Handles what the client sent; true if it is gone.
    fn serve_client(&mut self) -> bool {
        let Some(client) = &mut self.client else {
            return false;
        };
        loop {
            match client.connection.receive() {
                Ok(Received::Message(message)) => {
                    if let Some(log) = &mut self.log {
                        log.command(self.device.sim().now(), &message);
                    }
                    let reply = client.session.handle(&mut self.device, message);
                    // What fired while a request was simulated.
                    self.device.deliver_interrupts(self.log.as_mut());
                    if let (Some(log), Some(reply)) = (&mut self.log, &reply) {
                        log.reply(self.device.sim().now(), reply);
                    }
                    if let Some(reply) = reply
                        && let Err(error) = client.connection.send(&reply)
                    {
                        log::info!("answering the client: {error}");
                        return true;
                    }
                    if self.device.failure().is_some() {
                        return false;
                    }
                }
                Ok(Received::Nothing) => return false,
                Ok(Received::Closed) => return true,
                Err(error) => {
                    log::warn!("the client broke the protocol: {error}");
                    return true;
                }
            }
        }
    }

    fn wait(&self, stop: &dyn Stop, asleep: bool) -> Result<Ready, ServeError> {
        let client = match &self.client {
            Some(client) => client.connection.as_fd(),
            None => self.listener.as_fd(),
        };
        let mut fds = vec![PollFd::from_borrowed_fd(client, PollFlags::IN)];
        let stop_at = stop.fd().map(|fd| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            fds.len() - 1
        });
        // Without a client nobody takes what comes from the wire.
        let wire = self.device.sim().port.wire().fd();
        let wire_at = wire.filter(|_| self.client.is_some()).map(|fd| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            fds.len() - 1
        });
        let now = Timespec::default();
        let timeout = if asleep { None } else { Some(&now) };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let fired = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        Ok(Ready {
            client: fired(Some(0)),
            stop: fired(stop_at),
            wire: fired(wire_at),
        })
    }
}

struct Ready {
    client: bool,
    stop: bool,
    wire: bool,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
