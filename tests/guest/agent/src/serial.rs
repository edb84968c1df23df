//! The serial port to the host, as lines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

/// The port, without any processing of what passes.
pub struct Port(File);

/// What comes from the host.
pub struct Lines(BufReader<File>);

/// What goes to the host.
pub struct Out(File);

impl Port {
    /// Opens a serial port.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut settings = tcgetattr(&file)?;
        settings.make_raw();
        tcsetattr(&file, OptionalActions::Now, &settings)?;
        Ok(Self(file))
    }

    /// Both directions.
    pub fn split(self) -> io::Result<(Lines, Out)> {
        let out = Out(self.0.try_clone()?);
        Ok((Lines(BufReader::new(self.0)), out))
    }
}

impl Lines {
    /// The next line, waited for; `None` when the port is gone.
    pub fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        if self.0.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
    }
}

impl Out {
    /// Writes a line.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        let mut line = text.as_bytes().to_vec();
        line.push(b'\n');
        self.0.write_all(&line)?;
        self.0.flush()
    }
}
