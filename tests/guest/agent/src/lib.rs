//! What the host and the agent in a guest say to each other: a line of JSON a message, over a serial
//! port. Each request carries a number that its reply repeats, and is served by a thread of its own,
//! so that one can pull the card from under another.

#![deny(unsafe_op_in_unsafe_fn, missing_docs)]

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// What the agent prints when it is up; the host waits for it.
pub const HELLO: &str = "ferronic-agent";

/// A request with its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbered {
    /// Repeated in the reply.
    pub id: u64,
    /// What to do.
    #[serde(flatten)]
    pub request: Request,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// That of the request.
    pub id: u64,
    /// What came of it, in the form that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<serde_json::Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The first line of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`HELLO`].
    pub hello: String,
    /// Seconds since the kernel began.
    pub uptime_s: f64,
    /// Version of the kernel.
    pub kernel: String,
}

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Request {
    /// Loads kernel modules in this order; gives nothing.
    Modules {
        /// Their names; files of the initramfs.
        names: Vec<String>,
        /// Parameters of the last one.
        #[serde(default)]
        parameters: String,
    },
    /// Removes a kernel module; gives nothing.
    RemoveModule {
        /// Its name.
        name: String,
    },
    /// Functions of the PCI bus; gives a list of [`PciFunction`].
    Pci,
    /// Names of the network interfaces that are Ethernet; gives a list of [`Interface`].
    Interfaces,
    /// Gives an interface one more address, of IPv6 without asking whether it is free, and takes it up;
    /// gives nothing.
    Up {
        /// The interface.
        interface: String,
        /// Its address.
        address: IpAddr,
        /// Bits of the network part.
        prefix: u8,
    },
    /// Takes an interface down; gives nothing.
    Down {
        /// The interface.
        interface: String,
    },
    /// Sets the MTU; gives nothing.
    Mtu {
        /// The interface.
        interface: String,
        /// Bytes.
        mtu: u32,
    },
    /// Makes a bridge of interfaces, which sends nothing of its own, and takes it and them up, without
    /// addresses; gives nothing.
    Bridge {
        /// Its name.
        name: String,
        /// What it joins.
        ports: Vec<String>,
    },
    /// Reads registers of 32 bits past the function's driver, whatever that does; gives a list of
    /// numbers. The kernel must have been started with `iomem=relaxed`.
    Registers {
        /// Of the function, as sysfs writes it.
        address: String,
        /// Its memory region.
        bar: u8,
        /// Where they are in it, in bytes.
        offsets: Vec<u64>,
    },
    /// Writes registers likewise, one after the other; gives nothing.
    SetRegisters {
        /// Of the function, as sysfs writes it.
        address: String,
        /// Its memory region.
        bar: u8,
        /// Where in it, in bytes, and the new value.
        values: Vec<(u64, u32)>,
    },
    /// Sends echo requests, each after an answer to one before; gives a [`Pings`].
    Ping {
        /// Who is asked.
        to: IpAddr,
        /// How many.
        count: u32,
        /// Bytes after the ICMP header.
        size: usize,
        /// How many may be on their way at once.
        at_once: u32,
        /// How long an answer may take.
        timeout_ms: u64,
    },
    /// Sends to a sink that answers with what it got; gives a [`Transfer`].
    TcpSend {
        /// The sink.
        to: IpAddr,
        /// Its port.
        port: u16,
        /// How much.
        bytes: u64,
        /// Of the pattern.
        seed: u64,
    },
    /// Takes from a source; gives a [`Transfer`].
    TcpReceive {
        /// The source.
        from: IpAddr,
        /// Its port.
        port: u16,
        /// How much.
        bytes: u64,
        /// Of the pattern.
        seed: u64,
    },
    /// Sends one buffer as datagrams of `segment` bytes to an echo, cut by the kernel or the card; gives
    /// a [`Transfer`] of what came back until everything had, or nothing more came.
    UdpSegments {
        /// The echo.
        to: IpAddr,
        /// Its port.
        port: u16,
        /// How much in all.
        bytes: usize,
        /// Bytes of a datagram; the last may be shorter.
        segment: u16,
        /// Of the pattern.
        seed: u64,
    },
    /// Sends a frame past the kernel's IP; gives nothing.
    Packet {
        /// The interface.
        interface: String,
        /// The virtio header: what is still to be done to the frame.
        virtio: Vec<u8>,
        /// The headers of the frame.
        headers: Vec<u8>,
        /// Bytes of the pattern behind them.
        payload: usize,
        /// Of the pattern.
        seed: u64,
    },
    /// Breaks the connections of all transfers, which then fail; gives nothing.
    Disconnect,
    /// What `ethtool -i`, `-l` and `-S` show; gives an [`Ethtool`].
    Ethtool {
        /// The interface.
        interface: String,
    },
    /// What `ethtool -k` shows; gives an [`Offload`] by name.
    Offloads {
        /// The interface.
        interface: String,
    },
    /// As `ethtool -K`: turns an offload on or off, by its name in the kernel; gives nothing. What
    /// became of it is for [`Request::Offloads`] to tell: others may follow.
    SetOffload {
        /// The interface.
        interface: String,
        /// Its name, as `tx-tcp-segmentation`.
        name: String,
        /// Whether it is wanted.
        on: bool,
    },
    /// Reads a file, of sysfs for example; gives its text.
    Read {
        /// The file.
        path: String,
    },
    /// Writes a file, of sysfs for example; gives nothing.
    Write {
        /// The file.
        path: String,
        /// Its new text.
        text: String,
    },
    /// The target of a symbolic link; gives its text, empty when there is none.
    Link {
        /// The link.
        path: String,
    },
    /// Names in a directory; gives a list of texts.
    List {
        /// The directory.
        path: String,
    },
    /// Runs a program to its end; gives an [`Exit`].
    Run {
        /// Program and arguments.
        argv: Vec<String>,
        /// It is killed after this time.
        timeout_ms: u64,
    },
    /// Starts a program; gives its process id.
    Spawn {
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// Writes to the standard input of a program that was started; gives nothing.
    Say {
        /// Its process id.
        pid: u32,
        /// What is written.
        text: String,
    },
    /// Sends a signal to a program that was started; gives nothing.
    Signal {
        /// Its process id.
        pid: u32,
        /// The signal.
        signal: i32,
    },
    /// Waits for the end of a program that was started; gives an [`Exit`].
    Wait {
        /// Its process id.
        pid: u32,
        /// It is killed after this time.
        timeout_ms: u64,
    },
    /// The messages of the kernel; gives a list of texts.
    KernelLog,
    /// Starts the machine again; there is no reply but the next [`Hello`].
    Reboot,
    /// Turns the machine off; there is no reply.
    PowerOff,
}

/// A function on the PCI bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PciFunction {
    /// Domain, bus, device and function as sysfs writes them.
    pub address: String,
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Its driver, if one is bound.
    pub driver: Option<String>,
    /// Its IOMMU group, if it has one.
    pub group: Option<u32>,
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its station address.
    pub mac: String,
    /// There is a carrier; only known while it is up.
    pub carrier: bool,
    /// Its MTU.
    pub mtu: u32,
    /// The PCI function behind it, if there is one.
    pub pci: Option<String>,
}

/// What came of echo requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pings {
    /// Requests sent.
    pub sent: u32,
    /// Answers that came in time and were equal.
    pub received: u32,
    /// Round trips in microseconds, in order of the answers.
    pub us: Vec<u32>,
}

/// What came of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Bytes that arrived.
    pub bytes: u64,
    /// SHA-256 of what should have come, in hexadecimal.
    pub sent: String,
    /// SHA-256 of what came.
    pub received: String,
    /// From the first byte to the last.
    pub seconds: f64,
}

/// What `ethtool` shows of an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ethtool {
    /// Driver of the interface.
    pub driver: String,
    /// Where it is.
    pub bus: String,
    /// Link detected.
    pub link: bool,
    /// Queue pairs that can be used.
    pub max_combined: u32,
    /// Queue pairs in use.
    pub combined: u32,
    /// Counters by name.
    pub statistics: BTreeMap<String, u64>,
}

/// An offload of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offload {
    /// It can be turned on and off.
    pub changeable: bool,
    /// Somebody wants it.
    pub wanted: bool,
    /// It is on: wanted, and nothing that it needs is off.
    pub on: bool,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_way_over_the_line() {
        let all = [
            Request::Pci,
            Request::Reboot,
            Request::Up {
                interface: "eth0".to_owned(),
                address: IpAddr::from([10, 0, 0, 2]),
                prefix: 24,
            },
            Request::Registers {
                address: "0000:00:04.0".to_owned(),
                bar: 0,
                offsets: vec![0x8000, u64::MAX],
            },
            Request::SetRegisters {
                address: "0000:00:04.0".to_owned(),
                bar: 0,
                values: vec![(0x8000, u32::MAX), (4, 0)],
            },
            Request::UdpSegments {
                to: "fd66::1".parse().expect("an address"),
                port: 7,
                bytes: 60_000,
                segment: 1000,
                seed: 1,
            },
            Request::Run {
                argv: vec!["/bin/ferronic".to_owned(), "a\nb".to_owned()],
                timeout_ms: 5,
            },
        ];
        for (id, request) in (7..).zip(all) {
            let numbered = Numbered { id, request };
            let line = serde_json::to_string(&numbered).expect("JSON");
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Numbered>(&line).ok(), Some(numbered));
        }
    }
}
