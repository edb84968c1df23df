//! What is done to the card, and what it must do then.

use std::error::Error;

use ferronic::pci::DmaRegion;

use crate::raw::{Raw, Ring, SIZE, WRITE, until};

/// Why the card did not behave.
pub type Failure = Box<dyn Error>;

type Case = fn(&Raw) -> Result<String, Failure>;

/// Every case.
pub const CASES: [(&str, Case); 8] = [
    ("transmit-descriptors-unmapped", |raw| {
        ring_unmapped(raw, 1, Part::Descriptors)
    }),
    ("transmit-available-unmapped", |raw| {
        ring_unmapped(raw, 1, Part::Available)
    }),
    ("receive-available-unmapped", |raw| {
        ring_unmapped(raw, 0, Part::Available)
    }),
    ("receive-descriptors-unmapped", |raw| {
        ring_unmapped(raw, 0, Part::Descriptors)
    }),
    ("used-ring-unmapped", used_ring_unmapped),
    ("rings-moved-while-enabled", rings_moved),
    ("transmit-buffers-unmapped", transmit_buffers_unmapped),
    ("receive-buffers-unmapped", receive_buffers_unmapped),
];

const BUFFER: usize = 2048;
const SHORT: usize = 60;
/// A ring of these takes the card longer than the kernel takes to unmap them.
const LONG: usize = 1514;
const HEADER: usize = 12;
/// An address that nothing was ever mapped at.
const NOWHERE: u64 = 0x6666_0000;
const CANARY: u8 = 0xa5;

enum Part {
    Descriptors,
    Available,
}

/// An ARP request for the peer, whose answer comes back.
fn request(len: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    let us = [2, 0, 0, 0, 0, 9];
    frame.extend(us);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(us);
    frame.extend([10, 66, 0, 9]);
    frame.extend([0; 6]);
    frame.extend([10, 66, 0, 1]);
    frame.resize(len, 0);
    frame
}

/// Buffers for a whole ring.
fn buffers(raw: &Raw) -> Result<DmaRegion, Failure> {
    Ok(raw.function.dma_alloc(BUFFER * usize::from(SIZE))?)
}

fn post(ring: &mut Ring, area: u64, count: u16) -> Result<(), Failure> {
    for n in 0..u64::from(count) {
        ring.offer(area + n * BUFFER as u64, BUFFER as u32, WRITE)?;
    }
    Ok(())
}

/// Puts requests into the buffers and offers them.
fn requests(ring: &mut Ring, area: &DmaRegion, count: u16, len: usize) -> Result<(), Failure> {
    let frame = request(len);
    for n in 0..usize::from(count) {
        area.memory().write(n * BUFFER, &[0; HEADER])?;
        area.memory().write(n * BUFFER + HEADER, &frame)?;
        let address = area.iova() + (n * BUFFER) as u64;
        ring.offer(address, (HEADER + frame.len()) as u32, 0)?;
    }
    Ok(())
}

fn used(ring: &Ring, wanted: u16) -> Result<bool, Failure> {
    Ok(until(|| Ok(ring.used_index()? == Some(wanted)))?)
}

/// A reset, and a question that is answered.
pub fn works(raw: &Raw) -> Result<(), Failure> {
    let [mut receive, mut transmit] = raw.start()?;
    let (here, there) = (buffers(raw)?, buffers(raw)?);
    post(&mut receive, here.iova(), 8)?;
    raw.send(&receive)?;
    requests(&mut transmit, &there, 1, SHORT)?;
    raw.send(&transmit)?;
    if !used(&transmit, 1)? {
        return Err("a frame is not taken".into());
    }
    if !used(&receive, 1)? {
        return Err("no answer is received".into());
    }
    let mut answer = [0; HEADER + 42];
    here.memory().read(0, &mut answer)?;
    if answer[HEADER + 12..HEADER + 22] != [8, 6, 0, 1, 8, 0, 6, 4, 0, 2] {
        return Err(format!("what is received is no answer: {answer:x?}").into());
    }
    if !raw.reset()? {
        return Err("the reset does not end".into());
    }
    Ok(())
}

/// A part of a ring that the card reads goes before it is read.
fn ring_unmapped(raw: &Raw, queue: usize, part: Part) -> Result<String, Failure> {
    let mut rings = raw.start()?;
    let area = buffers(raw)?;
    let ring = &mut rings[queue];
    match queue {
        0 => post(ring, area.iova(), 8)?,
        _ => requests(ring, &area, 8, SHORT)?,
    }
    ring.publish()?;
    match part {
        Part::Descriptors => drop(ring.desc.take()),
        Part::Available => drop(ring.avail.take()),
    }
    raw.kick(ring.index)?;
    if raw.breaks()? {
        Ok("needs a reset".to_owned())
    } else {
        Err("the card does not say that it needs a reset".into())
    }
}

/// The ring that the card only writes goes: it cannot know, and goes on.
fn used_ring_unmapped(raw: &Raw) -> Result<String, Failure> {
    let [mut receive, mut transmit] = raw.start()?;
    let (here, there) = (buffers(raw)?, buffers(raw)?);
    drop(transmit.used.take());
    post(&mut receive, here.iova(), 8)?;
    raw.send(&receive)?;
    requests(&mut transmit, &there, 4, SHORT)?;
    raw.send(&transmit)?;
    if used(&receive, 4)? {
        Ok("goes on without its used ring".to_owned())
    } else {
        Err("frames are not sent without a used ring".into())
    }
}

/// Addresses written while a queue is enabled are not taken.
fn rings_moved(raw: &Raw) -> Result<String, Failure> {
    let [mut receive, mut transmit] = raw.start()?;
    let (here, there) = (buffers(raw)?, buffers(raw)?);
    post(&mut receive, here.iova(), 8)?;
    raw.send(&receive)?;
    for queue in 0..2 {
        raw.place(queue, [NOWHERE, NOWHERE + 0x1000, NOWHERE + 0x2000])?;
    }
    requests(&mut transmit, &there, 4, SHORT)?;
    raw.send(&transmit)?;
    if used(&transmit, 4)? && used(&receive, 4)? {
        Ok("rings stay where they were enabled".to_owned())
    } else {
        Err("the rings were moved under the card".into())
    }
}

/// Frames go while the card reads them: a read that is refused is an error of the queue.
fn transmit_buffers_unmapped(raw: &Raw) -> Result<String, Failure> {
    let [_receive, mut transmit] = raw.start()?;
    let area = buffers(raw)?;
    requests(&mut transmit, &area, SIZE, LONG)?;
    raw.send(&transmit)?;
    drop(area);
    if raw.breaks()? {
        Ok("needs a reset".to_owned())
    } else {
        Err("the card does not say that it needs a reset".into())
    }
}

/// Posted buffers go before frames come: nothing is written there any more.
fn receive_buffers_unmapped(raw: &Raw) -> Result<String, Failure> {
    let [mut receive, mut transmit] = raw.start()?;
    let (here, there) = (buffers(raw)?, buffers(raw)?);
    let memory = here.memory().clone();
    memory.write(0, &vec![CANARY; memory.len()])?;
    post(&mut receive, here.iova(), SIZE)?;
    raw.send(&receive)?;
    drop(here);
    requests(&mut transmit, &there, SIZE / 2, SHORT)?;
    raw.send(&transmit)?;
    if !used(&transmit, SIZE / 2)? {
        return Err("frames are not sent".into());
    }
    // Answers that are on their way arrive, or are refused, meanwhile.
    let went_on = used(&receive, SIZE / 2)?;
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes)?;
    match bytes.iter().position(|byte| *byte != CANARY) {
        Some(at) => Err(format!("byte {at} was written after the memory was unmapped").into()),
        None if went_on => Ok("writes are refused, the card goes on".to_owned()),
        None => Ok("writes are refused, the card waits".to_owned()),
    }
}
