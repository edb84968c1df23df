//! Memory that goes from under the card, rings at addresses of nobody, a machine that is killed: the
//! guest hears of it, the simulator lives.

use std::sync::Arc;
use std::time::Duration;

use ferronic::pci::PciFunction;
use ferronic::pci::vfio_user::VfioUserFunction;
use ferronic::{DeviceConfig, selftest};
use ferronic_guest_agent::Request;

use super::tools::{
    Direction, card, interface_up, kernel_is_content, load_vfio_pci, load_virtio_net, ping,
    transfer_request, until,
};
use super::{Bench, Setup};
use crate::{GuestError, Iommu, Machine, PATIENCE, ensure};

/// The program in the guest.
const HOSTILE: &str = "/bin/hostile";
const FERRONIC: &str = "/bin/ferronic";

/// Cases in which the card must have been refused something.
const REFUSED: [&str; 7] = [
    "transmit-descriptors-unmapped",
    "transmit-available-unmapped",
    "receive-available-unmapped",
    "receive-descriptors-unmapped",
    "used-ring-unmapped",
    "transmit-buffers-unmapped",
    "receive-buffers-unmapped",
];

/// Runs the scenario.
pub fn run(bench: &mut Bench) -> Result<(), GuestError> {
    let mut machine = bench.boot(&Setup::new("hostile", Iommu::Strict))?;
    if let Err(error) = unmapped(&mut machine) {
        return Err(machine.explain(&error));
    }
    killed(machine)
}

fn unmapped(machine: &mut Machine) -> Result<(), GuestError> {
    let guest = &mut machine.guest;
    load_vfio_pci(guest)?;
    let address = card(guest)?.address;
    guest.succeed(&[FERRONIC, "bind", &address], PATIENCE)?;
    let cases = guest.succeed(&[HOSTILE], PATIENCE)?;
    ensure!(
        REFUSED.iter().all(|case| cases.contains(case)),
        "cases are missing: {cases}"
    );
    for case in cases.lines() {
        let before = machine.card.counters()?;
        let words = machine
            .guest
            .succeed(&[HOSTILE, &address, case], PATIENCE)?;
        let refused = machine.card.counters()?.since(&before).get("dma_refused");
        println!("  {case}: {} ({refused:.0} accesses refused)", words.trim());
        ensure!(
            (refused > 0.0) == REFUSED.contains(&case),
            "{case}: {refused} accesses of the card were refused"
        );
    }
    let guest = &mut machine.guest;
    guest.succeed(&[FERRONIC, "unbind", &address, "--restore"], PATIENCE)?;
    load_virtio_net(guest)?;
    interface_up(guest, &address)?;
    ping(guest, 50, 1400)?;
    println!("  back to virtio_net: 50 pings answered");
    kernel_is_content(guest)
}

/// QEMU is killed with frames on their way; the card is there for the next client.
fn killed(mut machine: Machine) -> Result<(), GuestError> {
    for direction in Direction::BOTH {
        let request: Request = transfer_request(direction, 16 << 20, 5);
        // Nobody will answer.
        drop(machine.guest.start(request)?);
    }
    let before = machine.card.counters()?;
    let traffic = until("traffic", PATIENCE, || {
        let passed = machine.card.counters()?.since(&before);
        Ok((passed.get("frames rx") > 100.0).then_some(()))
    });
    if let Err(error) = traffic {
        return Err(machine.explain(&error));
    }
    let card = machine.kill()?;
    let connect = || VfioUserFunction::connect(card.socket());
    // The server serves one client at a time, and looks at the end of the first when it can.
    let function = until(
        "the card for the next client",
        Duration::from_secs(20),
        || Ok(connect().ok()),
    )?;
    let function: Arc<dyn PciFunction> = Arc::new(function);
    let mut failed = Vec::new();
    let good = selftest::run(
        &function,
        &DeviceConfig::default(),
        selftest::Options::default(),
        || false,
        |check| {
            if let selftest::Outcome::Failed(words) = &check.outcome {
                failed.push(format!("{}: {words}", check.name));
            }
        },
    );
    drop(function);
    ensure!(good, "after QEMU was killed the card fails: {failed:?}");
    println!("  QEMU killed under traffic: the next client's self-test passes");
    card.stop().map(|_| ())
}
