//! The messages of a client as text, for people.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use super::connection::Message;
use super::protocol::{
    DmaMap, DmaUnmap, Fields, HEADER, Header, RegionAccess, SetIrqs, command, flag,
};

/// A file with a line a message: host time in seconds, simulated time in cycles, what it was.
pub struct MessageLog {
    out: BufWriter<File>,
    began: Instant,
}

/// Bytes of data that are shown.
const SHOWN: usize = 16;

impl MessageLog {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::new(File::create(path)?),
            began: Instant::now(),
        })
    }

    /// What the client asks for.
    pub(super) fn command(&mut self, now: u64, message: &Message) {
        let posted = if message.header.is_posted() {
            " posted"
        } else {
            ""
        };
        let fds = match message.fds.len() {
            0 => String::new(),
            n => format!(" fds {n}"),
        };
        let text = describe(message.header.command, &message.payload);
        self.line(now, &format!("> {} {text}{fds}{posted}", message.header.id));
    }

    /// What it is answered.
    pub(super) fn reply(&mut self, now: u64, reply: &[u8]) {
        let Some((head, payload)) = reply.split_first_chunk::<HEADER>() else {
            return;
        };
        let header = Header::parse(head);
        let text = if header.flags & flag::ERROR != 0 {
            format!("error {}", header.error)
        } else {
            match RegionAccess::parse(payload) {
                Some((_, data)) if header.command == command::REGION_READ => bytes(data),
                _ => "done".to_owned(),
            }
        };
        self.line(now, &format!("< {} {text}", header.id));
    }

    /// A vector whose eventfd was written.
    pub(super) fn interrupt(&mut self, now: u64, vector: u16) {
        self.line(now, &format!("! vector {vector}"));
    }

    /// Anything else.
    pub(super) fn note(&mut self, now: u64, text: &str) {
        self.line(now, &format!("# {text}"));
        let _ = self.out.flush();
    }

    fn line(&mut self, now: u64, text: &str) {
        let seconds = self.began.elapsed().as_secs_f64();
        if let Err(error) = writeln!(self.out, "{seconds:.6} {now} {text}") {
            log::warn!("writing down a message: {error}");
        }
    }
}

fn describe(number: u16, payload: &[u8]) -> String {
    match number {
        command::VERSION => {
            let text = payload.get(4..).unwrap_or_default();
            format!(
                "VERSION {}",
                String::from_utf8_lossy(text).trim_end_matches('\0')
            )
        }
        command::DMA_MAP => DmaMap::parse(payload).map_or("DMA_MAP, cut".to_owned(), |map| {
            let access = map.flags;
            format!(
                "DMA_MAP {:#x} + {:#x} offset {:#x} access {access}",
                map.address, map.size, map.offset
            )
        }),
        command::DMA_UNMAP => {
            DmaUnmap::parse(payload).map_or("DMA_UNMAP, cut".to_owned(), |unmap| {
                format!(
                    "DMA_UNMAP {:#x} + {:#x} flags {}",
                    unmap.address, unmap.size, unmap.flags
                )
            })
        }
        command::DEVICE_GET_INFO => "DEVICE_GET_INFO".to_owned(),
        command::DEVICE_GET_REGION_INFO => format!("REGION_INFO {}", third(payload)),
        command::DEVICE_GET_IRQ_INFO => format!("IRQ_INFO {}", third(payload)),
        command::DEVICE_SET_IRQS => {
            SetIrqs::parse(payload).map_or("SET_IRQS, cut".to_owned(), |(irqs, _)| {
                format!(
                    "SET_IRQS index {} vectors {} + {} flags {:#x}",
                    irqs.index, irqs.start, irqs.count, irqs.flags
                )
            })
        }
        command::REGION_READ => region("READ", payload),
        command::REGION_WRITE => region("WRITE", payload),
        command::DEVICE_RESET => "DEVICE_RESET".to_owned(),
        other => format!("command {other}"),
    }
}

fn region(what: &str, payload: &[u8]) -> String {
    RegionAccess::parse(payload).map_or(format!("{what}, cut"), |(access, data)| {
        format!(
            "{what} region {} at {:#x} + {} {}",
            access.region,
            access.offset,
            access.count,
            bytes(data)
        )
    })
}

fn third(payload: &[u8]) -> String {
    let mut fields = Fields(payload);
    let (_, _) = (fields.u32(), fields.u32());
    fields
        .u32()
        .map_or("cut".to_owned(), |index| index.to_string())
}

fn bytes(data: &[u8]) -> String {
    let shown: String = data
        .iter()
        .take(SHOWN)
        .map(|b| format!("{b:02x}"))
        .collect();
    let more = if data.len() > SHOWN { "..." } else { "" };
    format!("{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_by_name_and_cut_ones_do_no_harm() {
        let mut payload = Vec::new();
        RegionAccess {
            offset: 0x3004,
            region: 0,
            count: 2,
        }
        .put(&mut payload);
        payload.extend([1, 0]);
        assert_eq!(
            describe(command::REGION_WRITE, &payload),
            "WRITE region 0 at 0x3004 + 2 0100"
        );
        for number in 0..20 {
            for len in 0..payload.len() {
                assert!(!describe(number, &payload[..len]).is_empty());
            }
        }
    }
}
