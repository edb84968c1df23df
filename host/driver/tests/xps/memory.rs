//! S3-R1: what a choice reads, where it lies, and what it does not do.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ferronic::xps::{Flow, Mask, Socket, Xps, XpsError};
use ferronic_oracle::steering::lines::{Access, Caches};

use crate::{card, from, list};

/// Memory as the system gives it, counted by thread, and none above a limit that a thread may set.
struct Limited;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(usize::MAX) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// What a thread does whenever it takes memory or gives it back; it takes none itself.
    static LOOK: Cell<Option<&'static dyn Fn()>> = const { Cell::new(None) };
}

fn look() {
    // Not while it looks.
    if let Some(look) = LOOK.take() {
        look();
        LOOK.set(Some(look));
    }
}

// SAFETY: memory is the system allocator's, or none.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        look();
        if layout.size() > LARGEST.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        look();
        // SAFETY: the caller's promise is passed on; `alloc` took it from the system.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static MEMORY: Limited = Limited;

/// What the driver keeps of a queue that is stopped and started again.
#[repr(C, align(64))]
struct Queue {
    stopped: u64,
}

/// Each CPU sends by turns, on its own queue; queue 0 is stopped or started after each packet.
fn toggle(cpus: u32, mut reads: impl FnMut(u32) -> Vec<usize>, state: usize) -> Caches {
    let mut caches = Caches::new();
    for packet in 0..1000 {
        let cpu = packet % cpus;
        for line in reads(cpu) {
            caches.touch(cpu as usize, line, Access::Read);
        }
        caches.touch(0, state, Access::Write);
    }
    caches
}

#[test]
fn s3_r1_maps_are_never_in_a_line_that_changes() {
    let cpus = 16;
    let xps = card(16, cpus);
    let queues: Vec<Queue> = (0..16).map(|_| Queue { stopped: 0 }).collect();
    for queue in 0..cpus {
        let own = Mask::of([usize::from(queue)], 16).unwrap();
        xps.set_cpus(queue, &own).unwrap();
    }
    let mut lines: Vec<usize> = Vec::new();
    let mut reads = |cpu| {
        let mut reads = Vec::new();
        let view = xps.view_probed(&mut reads);
        let pick = view.pick_probed(&from(cpu, 0), None, &mut reads);
        assert_eq!(u32::from(pick.queue), cpu);
        lines.extend(&reads);
        reads
    };
    let state = std::ptr::from_ref(&queues[0].stopped).addr();
    let ours = toggle(u32::from(cpus), &mut reads, state);
    assert_eq!(ours.moves_of(state), 0);
    // What each CPU reads comes to it once, and is never taken away: no line moves a second time.
    lines.sort_unstable();
    lines.dedup();
    let most = lines.len() as u64 * u64::from(cpus);
    assert!(ours.moves() <= most, "{} moves", ours.moves());

    // As it was in the patch that was reviewed: the pointer beside the state of queue 0.
    let naive = toggle(u32::from(cpus), |_| vec![state], state);
    assert!(naive.moves() > 1000, "{} moves", naive.moves());
}

#[test]
fn s3_r1_choosing_takes_no_memory_and_no_lock() {
    let xps = card(64, 64);
    for queue in 0..64 {
        xps.set_cpus(queue, &Mask::all(64)).unwrap();
    }
    let mut socket = Socket::new();
    let mut flow = Flow::new(1);
    // The first look of a thread may set it up.
    drop(xps.view());
    let before = COUNT.get();
    for number in 0..1000 {
        let view = xps.view();
        view.pick(&from(number % 64, number << 20), Some(&mut socket));
        let (_, flight) = flow.send(&view, number % 64, 0);
        drop(flight);
    }
    assert_eq!(COUNT.get(), before);

    // While another thread changes something and has the lock:
    let (changing, is_changing) = mpsc::channel();
    let (looked, has_looked) = mpsc::channel();
    let xps = &xps;
    // Moved, so that a failure here ends the other thread's waiting.
    thread::scope(move |scope| {
        let change = scope.spawn(move || {
            xps.set_queues(8, |_| {
                changing.send(()).unwrap();
                has_looked.recv_timeout(Duration::from_secs(10)).is_ok()
            })
        });
        is_changing.recv().unwrap();
        let pick = xps.view().pick(&from(1, u32::MAX), None);
        assert_eq!(pick.queue, 7);
        let _ = looked.send(());
        assert_eq!(change.join().unwrap().unwrap(), Some(true));
    });
}

/// A reader that comes at any step of a change, at which the change takes or gives memory, sees three
/// CPUs that are changed together as they were or as they will be, and never again as they were.
#[test]
fn s3_r6_each_step_of_a_change_shows_the_old_map_or_the_new_one_whole() {
    thread_local! {
        /// Looks that saw the old map, the new one, and neither.
        static SEEN: [Cell<u32>; 3] = const { [const { Cell::new(0) }; 3] };
    }
    let xps: &Xps = Box::leak(Box::new(card(64, 64)));
    let own: Vec<_> = (0..64).map(|cpu| Mask::of([cpu], 64).unwrap()).collect();
    for (queue, mask) in (0..).zip(&own) {
        xps.set_cpus(queue, mask).unwrap();
    }
    let picks = || {
        let view = xps.view();
        [7, 21, 42].map(|cpu| view.pick(&from(cpu, 0), None).queue)
    };
    let (before, after) = ([7, 21, 42], [5, 5, 5]);
    let watch = |old: [u16; 3], new: [u16; 3], change: &dyn Fn()| {
        assert_eq!(picks(), old);
        SEEN.with(|seen| seen.each_ref().map(|count| count.set(0)));
        let look: &'static dyn Fn() = Box::leak(Box::new(move || {
            let picks = picks();
            SEEN.with(|[olds, news, others]| {
                let count = match () {
                    () if picks == new => news,
                    () if picks == old && news.get() == 0 => olds,
                    () => others,
                };
                count.set(count.get() + 1);
            });
        }));
        LOOK.set(Some(look));
        change();
        LOOK.set(None);
        let [olds, news, others] = SEEN.with(|seen| seen.each_ref().map(Cell::get));
        assert_eq!(others, 0, "{olds} saw the old map, {news} the new one");
        assert!(
            olds > 0 && news > 0,
            "{olds} saw the old map, {news} the new one"
        );
        assert_eq!(picks(), new);
    };
    let more = list("5,7,21,42", 64);
    watch(before, after, &|| xps.set_cpus(5, &more).unwrap());
    watch(after, before, &|| xps.set_cpus(5, &own[5]).unwrap());
    // Maps that are dropped, and queues that go, likewise; then the hash chooses.
    watch(before, [0; 3], &|| xps.set_classes(0).unwrap());
    for queue in [20, 40, 60] {
        xps.set_cpus(queue, &list("7,21,42", 64)).unwrap();
    }
    watch([20; 3], [0; 3], &|| {
        xps.set_queues(16, |_| ()).unwrap();
    });
}

#[test]
fn s3_r6_want_of_memory_leaves_the_old_map() {
    let cpus = 1024;
    let xps = card(64, cpus);
    let all = Mask::all(usize::from(cpus));
    xps.set_cpus(3, &list("0,1000", 1024)).unwrap();
    xps.set_rxqs(4, &list("5", 64)).unwrap();
    // Less than a map of 1,024 CPUs, more than anything that does not depend on their number.
    let limited = |change: &dyn Fn() -> Result<(), XpsError>| {
        LARGEST.set(1024);
        let result = change();
        LARGEST.set(usize::MAX);
        let error = result.unwrap_err();
        assert!(matches!(error, XpsError::Memory { .. }), "{error}");
        assert!(error.to_string().contains("was left as it was"));
        assert_eq!(xps.cpus(3).unwrap().list().to_string(), "0,1000");
        assert_eq!(xps.rxqs(4).unwrap().list().to_string(), "5");
        assert_eq!(xps.queues(), 64);
        assert_eq!(xps.view().pick(&from(1000, 0), None).queue, 3);
    };
    limited(&|| xps.set_cpus(5, &all));
    limited(&|| xps.set_cpus(3, &all));
    limited(&|| xps.set_queues(8, |_| ()).map(drop));
    limited(&|| xps.set_select(Some(|_| Some(1))));
    xps.set_cpus(5, &all).unwrap();
    assert_eq!(xps.cpus(5).unwrap(), all);
}
