//! The side that asks.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;

use super::message::{Answer, Outcome, Question, Request};
use super::{MAX_ANSWER, OWNER, PATIENCE, VERSION, place};
use crate::error::CliError;

/// Asks the command that has a card, if there is one.
///
/// # Errors
/// When it says why it does not do it, or does not answer.
pub fn ask(device: &str, request: &Request) -> Result<Option<Answer>, CliError> {
    let device = place::canonical(device);
    let path = match place::socket(&device) {
        Ok(path) => path,
        Err(e) => {
            log::info!("no command is asked: {e}");
            return Ok(None);
        }
    };
    let failed = |source: io::Error| CliError::file(&path, "the command did not answer", source);
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        // Nobody is there, or somebody was who is gone.
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Ok(None);
        }
        Err(e) => return Err(failed(e)),
    };
    let peer = socket_peercred(&stream).map_err(|e| failed(e.into()))?;
    if peer.uid != rustix::process::geteuid() && !peer.uid.is_root() {
        return Err(failed(io::Error::other("it is another user's")));
    }
    let question = Question {
        version: VERSION,
        device,
        request: request.clone(),
    };
    let line = serde_json::to_string(&question).map_err(|e| failed(e.into()))? + "\n";
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    stream
        .set_read_timeout(Some(OWNER + PATIENCE))
        .map_err(failed)?;
    (&stream).write_all(line.as_bytes()).map_err(failed)?;
    let mut line = Vec::new();
    let mut reader = BufReader::new(&stream).take(MAX_ANSWER as u64);
    reader.read_until(b'\n', &mut line).map_err(failed)?;
    if line.is_empty() {
        // It ended in between: the card is free.
        return Ok(None);
    }
    let answer: Answer = serde_json::from_slice(&line).map_err(|e| failed(e.into()))?;
    match answer.outcome {
        Outcome::Done(_) => Ok(Some(answer)),
        Outcome::Error(why) => Err(CliError::Running {
            command: answer.command,
            pid: answer.pid,
            why,
        }),
    }
}
