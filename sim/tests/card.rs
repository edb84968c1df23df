//! The RTL behind the simulator's own interfaces, with the driver only where traffic is needed.

use std::sync::Arc;
use std::time::Duration;

use ferronic::pci::PciFunction;
use ferronic::{Device, DeviceConfig};
use ferronic_sim::wire::WireQueue;
use ferronic_sim::{Sim, SimConfig, SimFunction};

fn function(config: SimConfig) -> SimFunction {
    let sim = Sim::new(config).expect("the model starts");
    SimFunction::new(sim).expect("the card enumerates")
}

#[test]
fn card_enumerates_as_virtio_net() {
    let function = function(SimConfig::default());
    let info = function.sim().function().cloned().expect("enumerated");
    assert_eq!((info.vendor, info.device), (0x1af4, 0x1041));
    assert_eq!(info.bar.size, 0x1_0000);
    assert_eq!(info.msix.vectors, 2 * 4 + 1);
    assert_eq!((info.msix.table, info.msix.pba), (0x4000, 0x5000));
}

#[test]
fn registers_answer_at_every_width() {
    let function = function(SimConfig::adversarial(3));
    let bar = function.bar(0).expect("BAR 0");
    assert_eq!(bar.len(), 0x1_0000);
    // num_queues of the common configuration.
    assert_eq!(bar.read16(0x12).expect("read"), 8);
    // device_feature_select, then VERSION_1.
    bar.write32(0x00, 1).expect("write");
    assert_eq!(bar.read32(0x04).expect("read") & 1, 1);
    assert_eq!(bar.read8(0x00).expect("read"), 1);
    // The address in the device configuration.
    let mac: Vec<u8> = (0..6)
        .map(|i| bar.read8(0x2000 + i).expect("read"))
        .collect();
    assert_eq!(mac, [0x02, 0xfe, 0x01, 0x00, 0x00, 0x01]);
    assert!(bar.read32(0x1_0000).is_err());
    assert!(bar.read32(2).is_err());
}

#[test]
fn function_level_reset_restores_the_registers() {
    let function = function(SimConfig::default());
    let bar = function.bar(0).expect("BAR 0");
    bar.write8(0x14, 1).expect("write");
    assert_eq!(bar.read8(0x14).expect("read"), 1);
    let resets = || function.sim().root.stats.function_resets;
    let before = resets();
    function.reset().expect("reset");
    assert_eq!(bar.read8(0x14).expect("read"), 0);
    assert_eq!(resets(), before + 1);
}

#[test]
fn same_seed_takes_the_same_cycles() {
    let cycles = |seed| {
        let function = function(SimConfig::adversarial(seed));
        let bar = function.bar(0).expect("BAR 0");
        for i in 0..50 {
            bar.write32(0, i).expect("write");
            bar.read32(0).expect("read");
        }
        function.now()
    };
    assert_eq!(cycles(5), cycles(5));
    assert_ne!(cycles(5), cycles(6));
}

/// Frames without meaning, each different.
fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| vec![n as u8; 60 + n % 1400]).collect()
}

#[test]
fn idle_time_is_skipped() {
    let (wire, port) = WireQueue::new();
    let sim = Sim::with_wire(SimConfig::default(), port).expect("the model starts");
    let function = SimFunction::new(sim).expect("the card enumerates");
    let clocked = |function: &SimFunction| {
        function.run(5_000).expect("settle");
        let before = function.sim().stats();
        let interrupts = function.enable_interrupts(1).expect("MSI-X");
        let now = function.now();
        let fired = interrupts.wait(Duration::from_secs(1)).expect("wait");
        assert_eq!(fired, None);
        assert!(function.now() - now >= 125_000_000);
        function.sim().stats().evaluated - before.evaluated
    };
    // Programming the vectors takes some hundred cycles, the idle second itself next to none: at
    // the slowest speed that is acceptable, 10 ms are 3,000 cycles.
    let evaluated = clocked(&function);
    assert!(evaluated < 3_000, "{evaluated} cycles were clocked");
    // The same with a driver that waits, before and after traffic.
    let seam: Arc<dyn PciFunction> = Arc::new(function.clone());
    let (_device, mut pairs) =
        Device::open(seam, DeviceConfig::default()).expect("the driver opens the card");
    for _ in 0..2 {
        let evaluated = clocked(&function);
        assert!(evaluated < 3_000, "{evaluated} cycles were clocked");
        frames(10).into_iter().for_each(|f| wire.push(f));
        function.run(20_000).expect("traffic");
        assert_eq!(pairs[0].rx.receive(64, |_| ()).expect("frames"), 10);
    }
}

#[test]
fn card_that_only_looks_for_a_buffer_waits_and_loses_nothing() {
    let (wire, port) = WireQueue::new();
    let sim = Sim::with_wire(SimConfig::default(), port).expect("the model starts");
    let function = SimFunction::new(sim).expect("the card enumerates");
    let seam: Arc<dyn PciFunction> = Arc::new(function.clone());
    let config = DeviceConfig {
        rx_buffers: Some(8),
        ..DeviceConfig::default()
    };
    let (device, mut pairs) = Device::open(seam, config).expect("the driver opens the card");
    let all = frames(300);
    all.iter().for_each(|f| wire.push(f.clone()));
    let mut got = Vec::new();
    while got.len() < all.len() {
        let waits = function
            .sim()
            .run_until(500_000, |sim| sim.is_waiting())
            .expect("the card runs");
        assert!(waits, "the clock never stops after {} frames", got.len());
        // Before it waited everything that could be done was done.
        let before = got.len();
        let burst = pairs[0].rx.receive(64, |frame| {
            let mut bytes = Vec::new();
            frame.copy_to(&mut bytes);
            got.push(bytes);
        });
        assert!(burst.is_ok());
        assert_eq!(got.len() - before, 8.min(all.len() - before));
        assert!(
            got.len() == all.len() || !function.sim().is_waiting() || {
                // The doorbell wakes it.
                device.poll();
                !function.sim().is_waiting()
            }
        );
    }
    assert!(got == all);
}

#[test]
fn dma_memory_is_mapped_while_it_lives() {
    let function: Arc<dyn PciFunction> = Arc::new(function(SimConfig::default()));
    let a = function.dma_alloc(1).expect("memory");
    let b = function.dma_alloc(70_000).expect("memory");
    assert_eq!((a.len(), b.len()), (4096, 73_728));
    assert!(a.iova() < 1 << 32 && b.iova() >= 1 << 32);
}
