//! The agent: `/init` of a guest. It mounts what it needs, says hello on the second serial port and
//! serves requests until the machine goes off.

#![deny(unsafe_op_in_unsafe_fn)]

mod bridge;
mod ethtool;
mod interface;
mod modules;
mod offload;
mod packet;
mod pci;
mod ping;
mod process;
mod registers;
mod serial;
mod tcp;
mod udp;

use std::error::Error;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ferronic_guest_agent::{HELLO, Hello, Numbered, Reply, Request};
use rustix::mount::{MountFlags, mount};
use rustix::system::RebootCommand;
use serde_json::Value;

use crate::process::Processes;
use crate::serial::Port;

/// Where the host listens.
const PORT: &str = "/dev/ttyS1";

/// What a request may fail with; the host gets its text.
type Failure = Box<dyn Error + Send + Sync>;

fn main() {
    if let Err(failure) = serve() {
        eprintln!("ferronic-agent: {failure}");
    }
    // The end of the first process is a panic of the kernel; going off is the better end.
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
}

fn serve() -> Result<(), Failure> {
    mount_file_systems()?;
    let port = Port::open(PORT)?;
    let (mut lines, out) = port.split()?;
    let out = Arc::new(Mutex::new(out));
    let say = move |text: String| {
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = out.line(&text) {
            eprintln!("ferronic-agent: writing to {PORT}: {error}");
        }
    };
    let hello = Hello {
        hello: HELLO.to_owned(),
        uptime_s: uptime()?,
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
            .trim()
            .to_owned(),
    };
    say(serde_json::to_string(&hello)?);
    let processes = Arc::new(Processes::default());
    while let Some(line) = lines.next()? {
        let numbered: Numbered = match serde_json::from_str(&line) {
            Ok(numbered) => numbered,
            Err(error) => {
                eprintln!("ferronic-agent: a line that is no request: {error}: {line:?}");
                continue;
            }
        };
        let (say, processes) = (say.clone(), processes.clone());
        thread::spawn(move || {
            let reply = match handle(numbered.request, &processes) {
                Ok(value) => Reply {
                    id: numbered.id,
                    ok: Some(value),
                    error: None,
                },
                Err(failure) => Reply {
                    id: numbered.id,
                    ok: None,
                    error: Some(failure.to_string()),
                },
            };
            match serde_json::to_string(&reply) {
                Ok(text) => say(text),
                Err(error) => eprintln!("ferronic-agent: {error}"),
            }
        });
    }
    Ok(())
}

fn mount_file_systems() -> Result<(), Failure> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("hugetlbfs", "/dev/hugepages"),
    ] {
        fs::create_dir_all(place)?;
        mount(kind, place, kind, MountFlags::empty(), None)
            .map_err(|error| format!("mounting {place}: {error}"))?;
    }
    Ok(())
}

fn uptime() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/uptime")?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse()?)
}

fn handle(request: Request, processes: &Processes) -> Result<Value, Failure> {
    let nothing = Ok(Value::Null);
    match request {
        Request::Modules { names, parameters } => {
            modules::load(&names, &parameters)?;
            nothing
        }
        Request::RemoveModule { name } => {
            modules::remove(&name)?;
            nothing
        }
        Request::Pci => Ok(serde_json::to_value(pci::functions()?)?),
        Request::Interfaces => Ok(serde_json::to_value(interface::list()?)?),
        Request::Up {
            interface,
            address,
            prefix,
        } => {
            interface::up(&interface, address, prefix)?;
            nothing
        }
        Request::Down { interface } => {
            interface::down(&interface)?;
            nothing
        }
        Request::Mtu { interface, mtu } => {
            interface::set_mtu(&interface, mtu)?;
            nothing
        }
        Request::Bridge { name, ports } => {
            bridge::make(&name, &ports)?;
            nothing
        }
        Request::Registers {
            address,
            bar,
            offsets,
        } => Ok(serde_json::to_value(registers::read(
            &address, bar, &offsets,
        )?)?),
        Request::SetRegisters {
            address,
            bar,
            values,
        } => {
            registers::write(&address, bar, &values)?;
            nothing
        }
        Request::Ping {
            to,
            count,
            size,
            at_once,
            timeout_ms,
        } => Ok(serde_json::to_value(ping::ping(
            to, count, size, at_once, timeout_ms,
        )?)?),
        Request::TcpSend {
            to,
            port,
            bytes,
            seed,
        } => Ok(serde_json::to_value(tcp::send(to, port, bytes, seed)?)?),
        Request::TcpReceive {
            from,
            port,
            bytes,
            seed,
        } => Ok(serde_json::to_value(tcp::receive(
            from, port, bytes, seed,
        )?)?),
        Request::UdpSegments {
            to,
            port,
            bytes,
            segment,
            seed,
        } => Ok(serde_json::to_value(udp::segments(
            to, port, bytes, segment, seed,
        )?)?),
        Request::Packet {
            interface,
            virtio,
            headers,
            payload,
            seed,
        } => {
            packet::send(&interface, &virtio, &headers, payload, seed)?;
            nothing
        }
        Request::Disconnect => {
            tcp::disconnect();
            nothing
        }
        Request::Ethtool { interface } => Ok(serde_json::to_value(ethtool::show(&interface)?)?),
        Request::Offloads { interface } => Ok(serde_json::to_value(offload::list(&interface)?)?),
        Request::SetOffload {
            interface,
            name,
            on,
        } => {
            offload::set(&interface, &name, on)?;
            nothing
        }
        Request::Read { path } => Ok(Value::String(
            String::from_utf8_lossy(&fs::read(&path).map_err(about(&path))?).into_owned(),
        )),
        Request::Write { path, text } => {
            fs::write(&path, text).map_err(about(&path))?;
            nothing
        }
        Request::Link { path } => Ok(Value::String(match fs::read_link(&path) {
            Ok(target) => target.to_string_lossy().into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(about(&path)(error)),
        })),
        Request::List { path } => {
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).map_err(about(&path))? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(serde_json::to_value(names)?)
        }
        Request::Run { argv, timeout_ms } => {
            Ok(serde_json::to_value(processes.run(&argv, timeout_ms)?)?)
        }
        Request::Spawn { argv } => Ok(processes.spawn(&argv)?.into()),
        Request::Say { pid, text } => {
            processes.say(pid, &text)?;
            nothing
        }
        Request::Signal { pid, signal } => {
            processes.signal(pid, signal)?;
            nothing
        }
        Request::Wait { pid, timeout_ms } => {
            Ok(serde_json::to_value(processes.wait(pid, timeout_ms)?)?)
        }
        Request::KernelLog => Ok(serde_json::to_value(process::kernel_log()?)?),
        Request::Reboot => {
            rustix::system::reboot(RebootCommand::Restart)?;
            nothing
        }
        Request::PowerOff => {
            rustix::system::reboot(RebootCommand::PowerOff)?;
            nothing
        }
    }
}

/// Names the file in the text of an error.
fn about(path: &str) -> impl Fn(std::io::Error) -> Failure {
    let path = path.to_owned();
    move |error| format!("{path}: {error}").into()
}
