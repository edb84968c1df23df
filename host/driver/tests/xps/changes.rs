//! S3-R5 to S3-R7: masks, and changes under the eyes of those who send.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ferronic::xps::{Cpus, Mask, Packet, Rule, Socket, Xps, XpsError};

use crate::{card, from, list, part};

fn cpus(xps: &Xps, queue: u16) -> String {
    xps.cpus(queue).unwrap().list().to_string()
}

#[test]
fn s3_r5_masks_are_not_exclusive_and_setting_one_leaves_the_others() {
    let xps = card(4, 8);
    xps.set_cpus(0, &list("0-3", 8)).unwrap();
    xps.set_cpus(1, &list("2-5", 8)).unwrap();
    assert_eq!([cpus(&xps, 0), cpus(&xps, 1)], ["0-3", "2-5"]);
    let both = |hash| xps.view().pick(&from(2, hash), None).queue;
    assert_eq!([both(0), both(u32::MAX)], [0, 1]);
    // Another mask takes the place of the first, here and nowhere else.
    xps.set_cpus(0, &list("3,7", 8)).unwrap();
    assert_eq!([cpus(&xps, 0), cpus(&xps, 1)], ["3,7", "2-5"]);
    assert_eq!([both(0), both(u32::MAX)], [1, 1]);
    let other = |cpu| xps.view().pick(&from(cpu, u32::MAX), None);
    assert_eq!(other(0).by, Rule::Hash);
    assert_eq!((other(7).queue, other(7).by), (0, Rule::CpuMap));
    assert_eq!(xps.rxqs(0).unwrap(), Mask::new(4));
}

#[test]
fn s3_r5_order_of_setting_does_not_matter() {
    let queues = [0, 3, 5, 6];
    let mut maps: Vec<Vec<u16>> = Vec::new();
    for turn in 0..4 {
        let xps = card(8, 4);
        for place in 0..4 {
            let queue = queues[(place * 3 + turn) % 4];
            xps.set_cpus(queue, &list("1", 4)).unwrap();
        }
        // Set once more, it does not go to the end.
        xps.set_cpus(0, &list("1", 4)).unwrap();
        let view = xps.view();
        let hashes = (0..64).map(|n| part(n, 64));
        maps.push(
            hashes
                .map(|hash| view.pick(&from(1, hash), None).queue)
                .collect(),
        );
    }
    let quarter = |queue| [queue; 16];
    let expected: Vec<u16> = queues.into_iter().flat_map(quarter).collect();
    assert_eq!(maps, vec![expected; 4]);
}

#[test]
fn s3_r5_cpus_that_are_offline_are_left_out() {
    let online = list("0-1,3", 4);
    let xps = Xps::new(4, 4, Cpus::with_online(online)).unwrap();
    xps.set_cpus(1, &Mask::all(4)).unwrap();
    assert_eq!(cpus(&xps, 1), "0-1,3");
    // That one comes changes no mask; it counts when one is set.
    xps.set_online(&list("0,2", 4)).unwrap();
    assert_eq!(cpus(&xps, 1), "0-1,3");
    xps.set_cpus(1, &Mask::all(4)).unwrap();
    assert_eq!(cpus(&xps, 1), "0,2");
    let error = xps.set_online(&list("4", 5)).unwrap_err();
    assert_eq!(error.to_string(), "CPUs: 4 is not there: there are 0 to 3");
}

#[test]
fn s3_r6_empty_masks_everywhere_leave_no_map() {
    let xps = card(4, 64);
    let reads = || {
        let mut probe = Vec::new();
        xps.view().pick_probed(&from(9, 1), None, &mut probe);
        probe.sort_unstable();
        probe.dedup();
        probe.len()
    };
    let without = reads();
    xps.set_cpus(1, &list("9", 64)).unwrap();
    xps.set_cpus(2, &list("9", 64)).unwrap();
    assert!(reads() > without);
    xps.set_cpus(1, &Mask::new(64)).unwrap();
    xps.set_cpus(2, &Mask::new(0)).unwrap();
    assert_eq!(reads(), without);
    assert_eq!(xps.view().pick(&from(9, 1), None).by, Rule::Hash);
}

/// One mask is replaced at a time, so that all but one CPU have an answer of the map at any time.
#[test]
fn s3_r6_readers_see_the_old_map_or_the_new_one_whole() {
    const CPUS: u16 = 64;
    /// Changes that the reader waits for, and how long: on a busy machine the two threads may hardly
    /// run at the same time.
    const CHANGES: u32 = 1000;
    const PATIENCE: Duration = Duration::from_secs(1);
    let xps = card(CPUS, CPUS);
    let shift = |by: u16| {
        for queue in 0..CPUS {
            let cpu = usize::from((queue + by) % CPUS);
            let mask = Mask::of([cpu], usize::from(CPUS)).unwrap();
            xps.set_cpus(queue, &mask).unwrap();
        }
    };
    shift(0);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut torn, mut seen, mut last) = (0, 0, None);
            let begin = Instant::now();
            while seen < CHANGES && begin.elapsed() < PATIENCE {
                let view = xps.view();
                let pick = |cpu| view.pick(&from(cpu, 0), None);
                let (picks, again) = ([0, 21, 42].map(pick), [0, 21, 42].map(pick));
                let none = picks.iter().filter(|pick| pick.by != Rule::CpuMap);
                torn += u32::from(none.count() > 1 || picks != again);
                match last.replace(picks) == Some(picks) {
                    // The one that changes them may need this CPU.
                    true => thread::yield_now(),
                    false => seen += 1,
                }
            }
            end.store(true, Ordering::Relaxed);
            assert_eq!(torn, 0, "of {seen} changes");
            assert!(seen > 1, "no change was seen");
        });
        let mut by = 0;
        while !end.load(Ordering::Relaxed) {
            by = (by + 1) % CPUS;
            shift(by);
        }
    });
}

#[test]
fn s3_r6_view_stays_what_it_was() {
    let xps = card(4, 4);
    xps.set_cpus(1, &list("0", 4)).unwrap();
    let before = xps.view();
    xps.set_cpus(1, &Mask::new(4)).unwrap();
    xps.set_cpus(2, &list("0", 4)).unwrap();
    assert_eq!(before.pick(&from(0, 0), None).queue, 1);
    assert_eq!(xps.view().pick(&from(0, 0), None).queue, 2);
}

#[test]
fn s3_r7_fewer_queues_are_limited_then_flushed_then_out_of_the_maps() {
    let xps = card(8, 4);
    for queue in 0..8 {
        xps.set_cpus(queue, &list("2", 4)).unwrap();
    }
    xps.set_cpus(7, &list("1", 4)).unwrap();
    let mut on_7 = Socket::new();
    let pick = |socket: Option<&mut Socket>, cpu| xps.view().pick(&from(cpu, u32::MAX), socket);
    assert_eq!(pick(Some(&mut on_7), 1).queue, 7);

    let seen = xps.set_queues(4, |dead| {
        // The map still has it, and it is not chosen any more.
        assert_eq!(xps.queues(), 4);
        let pick = pick(None, 1);
        assert_eq!((pick.queue, pick.by), (3, Rule::Hash));
        dead
    });
    assert_eq!(seen.unwrap(), Some(4..8));
    // A socket that was on one chooses again, though nothing allows it to overtake.
    assert_eq!(pick(Some(&mut on_7), 1).queue, 3);
    assert_eq!(on_7.queue(), Some(3));
    assert_eq!(cpus(&xps, 3), "2");
    // Those that are gone take no part of the hashes any more.
    let pick_2 = pick(None, 2);
    assert_eq!((pick_2.queue, pick_2.by), (3, Rule::CpuMap));
    // What was in the map of those that come back is gone.
    assert_eq!(xps.set_queues(8, |_| unreachable!()).unwrap(), None::<()>);
    assert_eq!(cpus(&xps, 7), "");
    assert_eq!(pick(None, 1).by, Rule::Hash);
    assert_eq!(pick(None, 2).queue, 3);
}

#[test]
fn s3_r7_flush_waits_for_those_who_may_still_choose() {
    let xps = card(8, 4);
    let flushed = AtomicBool::new(false);
    thread::scope(|scope| {
        let view = xps.view();
        // Of two changes ago.
        xps.set_cpus(1, &list("0", 4)).unwrap();
        let change = scope.spawn(|| xps.set_queues(2, |_| flushed.store(true, Ordering::SeqCst)));
        while xps.queues() != 2 {
            thread::yield_now();
        }
        thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(view.pick(&from(3, u32::MAX), None).queue, 7);
        assert!(!flushed.load(Ordering::SeqCst));
        drop(view);
        change.join().unwrap().unwrap();
        assert!(flushed.load(Ordering::SeqCst));
    });
}

#[test]
fn s3_r7_numbers_of_queues_that_cannot_be_are_refused() {
    let xps = card(8, 4);
    for queues in [0, 9, u16::MAX] {
        let error = xps.set_queues(queues, |_| unreachable!()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{queues} transmit queues cannot be in use; 1 to 8 can")
        );
    }
    assert_eq!(xps.queues(), 8);
    assert!(matches!(
        Xps::new(0, 1, Cpus::new(1)),
        Err(XpsError::Queues { .. })
    ));
}

#[test]
fn s3_r7_classes_that_lose_queues_are_given_up() {
    let xps = card(8, 2);
    xps.set_classes(3).unwrap();
    xps.set_class_queues(0, 0..2).unwrap();
    xps.set_class_queues(1, 2..4).unwrap();
    xps.set_class_queues(2, 4..8).unwrap();
    xps.set_priority(1, 1).unwrap();
    xps.set_priority(2, 2).unwrap();
    xps.set_cpus(3, &list("0", 2)).unwrap();
    let pick = |priority| {
        let packet = Packet {
            priority,
            ..from(0, u32::MAX)
        };
        xps.view().pick(&packet, None).queue
    };
    assert_eq!([pick(0), pick(1), pick(2)], [1, 3, 7]);
    xps.set_queues(6, |_| ()).unwrap();
    // Priority 2 has class 0 now, the others are as before.
    assert_eq!([pick(0), pick(1), pick(2)], [1, 3, 1]);
    xps.set_queues(1, |_| ()).unwrap();
    xps.set_queues(8, |_| ()).unwrap();
    assert_eq!([pick(0), pick(1), pick(2)], [7, 7, 7]);
    assert_eq!(cpus(&xps, 3), "");
}

#[test]
fn changing_classes_drops_maps_and_what_cannot_be_is_refused() {
    let xps = card(8, 2);
    xps.set_cpus(1, &list("0", 2)).unwrap();
    xps.set_rxqs(1, &list("0", 8)).unwrap();
    let by = |rule| assert_eq!(xps.view().pick(&from(0, 0), None).by, rule);
    by(Rule::CpuMap);
    xps.set_classes(2).unwrap();
    by(Rule::Hash);
    // A queue of no class has no mask.
    let error = xps.cpus(1).unwrap_err();
    assert!(error.to_string().contains("belongs to no traffic class"));
    xps.set_class_queues(0, 0..4).unwrap();
    assert!(xps.cpus(1).unwrap().is_empty() && xps.rxqs(1).unwrap().is_empty());
    xps.set_cpus(1, &list("0", 2)).unwrap();
    xps.set_cpus(2, &list("0", 2)).unwrap();
    // Queues that change their class leave the maps.
    xps.set_class_queues(1, 2..8).unwrap();
    assert_eq!([cpus(&xps, 1), cpus(&xps, 2)], ["0", ""]);
    let text = |result: Result<(), XpsError>| result.unwrap_err().to_string();
    assert!(text(xps.set_classes(17)).contains("at most 16"));
    assert!(text(xps.set_class_queues(2, 0..1)).contains("no traffic class 2"));
    assert!(text(xps.set_class_queues(1, 7..9)).contains("0 to 7 are in use"));
    assert!(text(xps.set_priority(16, 1)).contains("priority 16"));
    assert!(text(xps.set_priority(1, 2)).contains("no traffic class 2"));
}
