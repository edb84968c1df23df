//! Each scenario as a test.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ferronic_cosim_tests::{Resource, is_required, repository_root};
use ferronic_guest_tests::GuestError;
use ferronic_guest_tests::scenario::{Bench, Scenario};

/// One machine at a time: two would share the processors, and time-outs are of the host's clock.
static ALONE: Mutex<()> = Mutex::new(());

fn passes(scenario: Scenario) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().expect("a directory");
    let simulator = Path::new(env!("CARGO_BIN_EXE_guest"));
    let result = Bench::new(&repository_root(), simulator, dir.path(), false)
        .and_then(|mut bench| scenario.run(&mut bench));
    match result {
        Ok(()) => {}
        Err(GuestError::Unavailable(why)) if !required() => {
            println!("skipped: no guests on this machine: {why}");
        }
        Err(error) => panic!("{}: {error}", scenario.name()),
    }
}

fn required() -> bool {
    is_required(Resource::Guests).expect("FERRONIC_REQUIRE")
}

#[test]
fn stock_linux_driver_works_behind_an_iommu() {
    passes(Scenario::Linux);
}

#[test]
fn own_driver_works_over_kernel_vfio() {
    passes(Scenario::Vfio);
}

#[test]
fn stock_driver_sees_nothing_of_one_that_died_with_everything_on() {
    passes(Scenario::Completion);
}

#[test]
fn memory_taken_from_under_the_card_is_an_error_and_the_simulator_lives() {
    passes(Scenario::Hostile);
}

#[test]
fn testpmd_receives_sends_and_swaps_and_its_counters_agree_with_the_wire() {
    passes(Scenario::Dpdk);
}

#[test]
fn offloads_of_the_stock_driver_can_be_changed_and_segments_on_the_wire_are_right() {
    passes(Scenario::Offload);
}

#[test]
fn card_merges_for_the_stock_driver_and_a_bridge_cuts_exactly_what_it_merged() {
    passes(Scenario::Lro);
}
