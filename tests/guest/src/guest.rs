//! The agent in a guest, as the host sees it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ferronic_guest_agent::{Exit, HELLO, Hello, Numbered, Reply, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::GuestError;

/// How long a guest may take for a request that says nothing else.
pub const PATIENCE: Duration = Duration::from_secs(120);

type Answer = Result<Value, String>;

#[derive(Default)]
struct Waiting {
    replies: HashMap<u64, Sender<Answer>>,
    closed: bool,
}

/// The line to the agent.
pub struct Guest {
    stream: UnixStream,
    waiting: Arc<Mutex<Waiting>>,
    hellos: Receiver<Hello>,
    next: u64,
}

/// A request that the guest works on.
pub struct Pending {
    what: String,
    answer: Receiver<Answer>,
}

impl Guest {
    /// Connects to the serial port, at a socket that QEMU makes.
    pub fn connect(path: &Path) -> Result<Self, GuestError> {
        let begin = Instant::now();
        let stream = loop {
            match UnixStream::connect(path) {
                Ok(stream) => break stream,
                Err(error) if begin.elapsed() > Duration::from_secs(20) => {
                    return Err(GuestError::file(path)(error));
                }
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        };
        let lines = stream.try_clone().map_err(GuestError::file(path))?;
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let (hello, hellos) = mpsc::channel();
        let shared = waiting.clone();
        thread::spawn(move || {
            listen(lines, &shared, &hello);
            let mut waiting = lock(&shared);
            waiting.closed = true;
            waiting.replies.clear();
        });
        Ok(Self {
            stream,
            waiting,
            hellos,
            next: 0,
        })
    }

    /// Waits until the guest is up, or up again.
    pub fn hello(&self, patience: Duration) -> Result<Hello, GuestError> {
        self.hellos.recv_timeout(patience).map_err(|error| {
            if error == RecvTimeoutError::Timeout {
                GuestError::Timeout {
                    what: "the guest".to_owned(),
                    seconds: patience.as_secs(),
                }
            } else {
                GuestError::program("QEMU", "ended before the guest was up")
            }
        })
    }

    /// Asks for something and goes on.
    pub fn start(&mut self, request: Request) -> Result<Pending, GuestError> {
        let what = format!("{request:?}");
        self.next += 1;
        let (sender, answer) = mpsc::channel();
        {
            let mut waiting = lock(&self.waiting);
            if waiting.closed {
                return Err(GuestError::program("QEMU", "is gone"));
            }
            waiting.replies.insert(self.next, sender);
        }
        let numbered = Numbered {
            id: self.next,
            request,
        };
        let mut line =
            serde_json::to_string(&numbered).map_err(|e| GuestError::program("agent", e))?;
        line.push('\n');
        self.stream
            .write_all(line.as_bytes())
            .map_err(|error| GuestError::program("QEMU", error))?;
        Ok(Pending { what, answer })
    }

    /// Asks for something and waits for it.
    pub fn ask<T: DeserializeOwned>(&mut self, request: Request) -> Result<T, GuestError> {
        self.start(request)?.wait(PATIENCE)
    }

    /// Asks for something that gives nothing.
    pub fn order(&mut self, request: Request) -> Result<(), GuestError> {
        self.ask(request)
    }

    /// Runs a program of the guest to its end.
    pub fn run(&mut self, argv: &[&str], patience: Duration) -> Result<Exit, GuestError> {
        let request = Request::Run {
            argv: argv.iter().map(|text| (*text).to_owned()).collect(),
            timeout_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
        };
        self.start(request)?.wait(patience + PATIENCE)
    }

    /// Runs a program that must succeed; what it printed.
    pub fn succeed(&mut self, argv: &[&str], patience: Duration) -> Result<String, GuestError> {
        let exit = self.run(argv, patience)?;
        if exit.code == Some(0) {
            return Ok(exit.stdout);
        }
        Err(GuestError::Guest {
            what: argv.join(" "),
            why: format!(
                "exit code {:?}, signal {:?}: {}{}",
                exit.code, exit.signal, exit.stdout, exit.stderr
            ),
        })
    }

    /// The text of a file of the guest.
    pub fn read(&mut self, path: &str) -> Result<String, GuestError> {
        self.ask(Request::Read {
            path: path.to_owned(),
        })
    }

    /// Writes a file of the guest.
    pub fn write(&mut self, path: &str, text: &str) -> Result<(), GuestError> {
        self.order(Request::Write {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Asks for something that has no reply: the machine goes off or starts again.
    pub fn leave(&mut self, request: Request) -> Result<(), GuestError> {
        self.start(request).map(|_| ())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Pending {
    /// Waits for the answer.
    pub fn wait<T: DeserializeOwned>(self, patience: Duration) -> Result<T, GuestError> {
        let value = match self.answer.recv_timeout(patience) {
            Ok(Ok(value)) => value,
            Ok(Err(why)) => {
                let what = self.what;
                return Err(GuestError::Guest { what, why });
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(GuestError::Timeout {
                    what: format!("the answer to {}", self.what),
                    seconds: patience.as_secs(),
                });
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(GuestError::Guest {
                    what: self.what,
                    why: "the guest went away".to_owned(),
                });
            }
        };
        serde_json::from_value(value).map_err(|error| GuestError::Guest {
            what: self.what,
            why: format!("an answer of another form: {error}"),
        })
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(stream: UnixStream, waiting: &Mutex<Waiting>, hello: &Sender<Hello>) {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(n) if n > 0 => {}
            _ => return,
        }
        // A kernel that starts may leave bytes of its own before the first line.
        let text = String::from_utf8_lossy(&line);
        let Some(text) = text.find('{').and_then(|at| text.get(at..)) else {
            continue;
        };
        if let Ok(reply) = serde_json::from_str::<Reply>(text) {
            let sender = lock(waiting).replies.remove(&reply.id);
            if let Some(sender) = sender {
                let answer = match reply.error {
                    Some(error) => Err(error),
                    None => Ok(reply.ok.unwrap_or(Value::Null)),
                };
                let _ = sender.send(answer);
            }
        } else if let Ok(said) = serde_json::from_str::<Hello>(text)
            && said.hello == HELLO
        {
            // What was asked of the guest of before is not answered any more.
            lock(waiting).replies.clear();
            let _ = hello.send(said);
        }
    }
}
