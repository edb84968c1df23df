//! The root complex against a behavioural card.

use std::collections::VecDeque;
use std::sync::Arc;

use ferronic::pci::DmaMemory;
use proptest::prelude::*;

use super::*;
use crate::model::fill_beat;
use crate::tlp::{CompletionFields, cover, memory};

const WIDTH: usize = 8;

/// A card that sends what it is told and keeps what it gets.
#[derive(Default)]
struct Card {
    out: Outputs,
    input: Inputs,
    posted: VecDeque<(Header, Vec<u8>)>,
    reads: VecDeque<Header>,
    completions: VecDeque<(Header, Vec<u8>)>,
    sent: usize,
    got: Vec<(Header, Vec<u8>)>,
    got_at: Vec<u64>,
    requests: Vec<(Header, Vec<u8>)>,
}

impl Card {
    fn new() -> Self {
        let mut card = Self::default();
        card.out.rq_ready = 1;
        card.out.rc_ready = 1;
        card
    }

    fn show(beat: &mut Beat, tlp: Option<&(Header, Vec<u8>)>, sent: usize) {
        beat.valid = u8::from(tlp.is_some());
        if let Some((header, payload)) = tlp {
            let end = (sent + WIDTH).min(payload.len());
            beat.sop = u8::from(sent == 0);
            beat.eop = u8::from(end == payload.len());
            beat.hdr = *header;
            fill_beat(&mut beat.data, &payload[sent..end]);
        }
    }

    fn take(beat: &Beat, into: &mut Vec<(Header, Vec<u8>)>) -> bool {
        if beat.valid == 0 {
            return false;
        }
        if beat.sop == 1 {
            into.push((beat.hdr, Vec::new()));
        }
        let (header, payload) = into.last_mut().expect("a beat outside a TLP");
        let left = tlp::payload_bytes(header) - payload.len();
        payload.extend_from_slice(&beat_bytes(&beat.data)[..left.min(WIDTH)]);
        assert_eq!(beat.eop == 1, payload.len() == tlp::payload_bytes(header));
        beat.sop == 1
    }

    fn run(&mut self, root: &mut RootComplex, cycles: u64) {
        for _ in 0..cycles {
            Self::show(&mut self.out.pt, self.posted.front(), self.sent);
            let read = self.reads.front().map(|h| (*h, Vec::new()));
            Self::show(&mut self.out.np, read.as_ref(), 0);
            Self::show(&mut self.out.cc, self.completions.front(), 0);
            root.cycle(self.out.time, &self.out, &mut self.input);
            if self.input.pt_ready == 1 && self.out.pt.valid == 1 {
                self.sent += WIDTH;
                if self.out.pt.eop == 1 {
                    self.sent = 0;
                    self.posted.pop_front();
                }
            }
            if self.input.np_ready == 1 && self.out.np.valid == 1 {
                self.reads.pop_front();
            }
            if self.input.cc_ready == 1 && self.out.cc.valid == 1 {
                self.completions.pop_front();
            }
            if Self::take(&self.input.rc, &mut self.got) {
                self.got_at.push(self.out.time);
            }
            Self::take(&self.input.rq, &mut self.requests);
            self.out.time += 1;
        }
    }

    fn read(&mut self, address: u64, len: usize, tag: u8) {
        let (start, dws, enables) = cover(address, len);
        self.reads
            .push_back(memory(false, start, dws, enables, CARD_ID, tag));
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        let (start, dws, enables) = cover(address, data.len());
        let mut payload = vec![0x55; dws * 4];
        let skip = (address & 3) as usize;
        payload[skip..skip + data.len()].copy_from_slice(data);
        let header = memory(true, start, dws, enables, CARD_ID, 0);
        self.posted.push_back((header, payload));
    }

    /// The bytes that the completions of `tag` carried, checked against their headers.
    fn data(&self, address: u64, len: usize, tag: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (header, payload) in &self.got {
            if tlp::completion_tag(header) != tag {
                continue;
            }
            let at = address + bytes.len() as u64;
            assert_eq!(tlp::completion_byte_count(header), len - bytes.len());
            assert_eq!(u64::from(tlp::completion_lower_address(header)), at & 0x7f);
            let skip = (at & 3) as usize;
            let here = (payload.len() - skip).min(len - bytes.len());
            bytes.extend_from_slice(&payload[skip..skip + here]);
        }
        bytes
    }
}

fn root(config: RootComplexConfig) -> RootComplex {
    let mut root = RootComplex::new(config, WIDTH, 1);
    root.limits = LinkLimits {
        bus_master: true,
        max_payload: 256,
        max_read: 512,
        ext_tag: false,
    };
    root
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn mapped(root: &mut RootComplex, iova: u64, len: usize) -> Arc<DmaMemory> {
    let memory = DmaMemory::new(len).expect("memory");
    let backing = Backing::from(memory.clone());
    root.memory
        .map(iova, memory.len() as u64, &backing, 0, Access::READ_WRITE)
        .expect("map");
    memory
}

#[test]
fn read_first_byte_comes_after_the_latency() {
    let mut root = root(RootComplexConfig::default());
    let memory = mapped(&mut root, 0x10000, 4096);
    memory.write(0, &pattern(4096)).expect("write");
    let mut card = Card::new();
    card.read(0x10003, 300, 7);
    card.run(&mut root, 400);
    assert_eq!(card.data(0x10003, 300, 7), pattern(4096)[3..303]);
    assert_eq!(card.got_at[0], 125);
    assert!(root.is_idle() && !root.has_violations());
}

#[test]
fn default_completions_are_256_bytes_and_end_at_rcb() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    card.read(0x10010, 512, 0);
    card.run(&mut root, 400);
    let lengths: Vec<_> = card
        .got
        .iter()
        .map(|(h, _)| tlp::payload_bytes(h))
        .collect();
    assert_eq!(lengths, [240, 256, 16]);
}

#[test]
fn read_after_write_sees_the_write() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    card.write(0x10100, &pattern(256));
    card.run(&mut root, 32);
    card.read(0x10100, 256, 1);
    card.run(&mut root, 300);
    assert_eq!(card.data(0x10100, 256, 1), pattern(256));
}

#[test]
fn write_is_visible_after_half_the_latency() {
    let mut root = root(RootComplexConfig::default());
    let memory = mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    card.write(0x10000, &[1, 2, 3, 4]);
    card.run(&mut root, 62);
    let mut seen = [0; 4];
    memory.read(0, &mut seen).expect("read");
    assert_eq!(seen, [0; 4]);
    card.run(&mut root, 1);
    memory.read(0, &mut seen).expect("read");
    assert_eq!(seen, [1, 2, 3, 4]);
}

#[test]
fn access_across_scattered_maps_is_gathered() {
    let mut root = root(RootComplexConfig::default());
    let memory = DmaMemory::new(3 * 4096).expect("memory");
    let backing = Backing::from(memory.clone());
    for (page, offset) in [(0x1000, 0x2000), (0x2000, 0x0000), (0x3000, 0x1000)] {
        root.memory
            .map(page, 0x1000, &backing, offset, Access::READ_WRITE)
            .expect("map");
    }
    let data = pattern(0x2100);
    root.memory.write(0x1f80, &data[..0x1100]).expect("write");
    let mut back = vec![0; 0x1100];
    root.memory.read(0x1f80, &mut back).expect("read");
    assert_eq!(back, data[..0x1100]);
    let mut page = vec![0; 0x80];
    memory.read(0x2f80, &mut page).expect("read");
    assert_eq!(page, data[..0x80]);
}

#[test]
fn access_outside_is_unsupported_and_recorded() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    card.read(0x10ff0, 16, 0);
    card.read(0x11000, 4, 1);
    card.write(0x0fffc, &[1; 4]);
    card.run(&mut root, 300);
    let status: Vec<_> = card
        .got
        .iter()
        .map(|(h, _)| tlp::completion_status(h))
        .collect();
    assert_eq!(status, [0, 1]);
    let faults = root.take_memory_faults();
    let mut seen: Vec<_> = faults.iter().map(|f| (f.iova, f.write)).collect();
    seen.sort();
    assert_eq!(seen, [(0x0fffc, true), (0x11000, false)]);
    assert_eq!(root.stats.refused, 2);
}

#[test]
fn refused_write_changes_nothing() {
    let mut root = root(RootComplexConfig::default());
    let memory = mapped(&mut root, 0x10000, 4096);
    let fault = root
        .memory
        .write(0x10ffe, &[1, 2, 3, 4])
        .expect_err("beyond");
    assert_eq!(fault.reason, FaultReason::Unmapped);
    let mut last = [0; 2];
    memory.read(4094, &mut last).expect("read");
    assert_eq!(last, [0, 0]);
}

#[test]
fn permissions_and_guard_are_kept() {
    let mut map = HostMemory::new();
    let backing = Backing::from(DmaMemory::new(8192).expect("memory"));
    map.map(0, 4096, &backing, 0, Access::READ_ONLY)
        .expect("map");
    map.map(4096, 4096, &backing, 4096, Access::READ_WRITE)
        .expect("map");
    let reason = |r: Result<(), MemoryFault>| r.expect_err("refused").reason;
    assert_eq!(reason(map.write(0, &[0])), FaultReason::Permission);
    assert_eq!(reason(map.write(4095, &[0; 2])), FaultReason::Permission);
    map.guard_enable();
    assert_eq!(reason(map.write(4096, &[0])), FaultReason::Guarded);
    map.guard_allow(4096, 64);
    assert!(map.write(4096, &[0; 64]).is_ok());
    assert_eq!(reason(map.write(4096, &[0; 65])), FaultReason::Guarded);
    map.guard_revoke(4100, 4);
    assert_eq!(reason(map.write(4096, &[0; 8])), FaultReason::Guarded);
}

#[test]
fn map_and_unmap_edges() {
    let mut map = HostMemory::new();
    let backing = Backing::from(DmaMemory::new(8192).expect("memory"));
    let rw = Access::READ_WRITE;
    assert!(map.map(0, 0, &backing, 0, rw).is_err());
    assert!(map.map(0, 8193, &backing, 0, rw).is_err());
    assert!(map.map(0, 4096, &backing, 4097, rw).is_err());
    assert!(map.map(0, 4096, &backing, u64::MAX, rw).is_err());
    assert!(map.map(u64::MAX - 4094, 4096, &backing, 0, rw).is_err());
    // The last page of the address space.
    let last = u64::MAX - 4095;
    map.map(last, 4096, &backing, 0, rw).expect("map");
    assert!(map.write(u64::MAX, &[1]).is_ok());
    assert!(map.write(u64::MAX, &[1, 2]).is_err());
    map.map(0x1000, 8192, &backing, 0, rw).expect("map");
    assert!(matches!(
        map.map(0x2000, 4096, &backing, 0, rw),
        Err(MapError::Overlap { other: 0x1000, .. })
    ));
    assert!(matches!(map.unmap(0x2000, 4096), Err(MapError::Cut { .. })));
    assert!(matches!(map.unmap(0, 0x2000), Err(MapError::Cut { .. })));
    // Ranges that hold nothing, and huge ones, are fine.
    assert_eq!(map.unmap(0x8000_0000, 0xffff_ffff_0110_0000), Ok(0));
    assert_eq!(map.unmap(last, 0xffff_ffff_0110_0000), Ok(1));
    assert_eq!(map.unmap(0, u64::MAX), Ok(1));
    assert_eq!(map.mappings(), 0);
}

#[test]
fn faults_answer_as_asked_for() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    let kinds = [
        Fault::UnsupportedRequest,
        Fault::CompleterAbort,
        Fault::Poisoned,
        Fault::Lost,
        Fault::LostTail,
        Fault::AbortTail,
        Fault::Surplus,
        Fault::WrongTag,
    ];
    for (tag, kind) in kinds.into_iter().enumerate() {
        root.faults.add(FaultRule::next(kind, 1));
        card.read(0x10000, 512, tag as u8);
    }
    card.run(&mut root, 2000);
    let seen = |tag: u8| -> Vec<(u8, bool, usize)> {
        card.got
            .iter()
            .filter(|(h, _)| tlp::completion_tag(h) == tag)
            .map(|(h, p)| (tlp::completion_status(h), tlp::is_poisoned(h), p.len()))
            .collect()
    };
    assert_eq!(seen(0), [(1, false, 0)]);
    assert_eq!(seen(1), [(4, false, 0)]);
    assert_eq!(seen(2), [(0, true, 256), (0, true, 256)]);
    assert_eq!(seen(3), []);
    assert_eq!(seen(4), [(0, false, 256)]);
    assert_eq!(seen(5), [(0, false, 256), (4, false, 0)]);
    assert_eq!(seen(6), [(0, false, 256); 3]);
    assert_eq!(seen(7), [(0, false, 256), (0, false, 256)]);
    assert_eq!(seen(0x87), [(0, false, 256)]);
    assert!(root.is_idle());
}

#[test]
fn starved_type_blocks_only_itself() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    root.starve_until(CreditType::NonPosted, 500);
    card.read(0x10000, 4, 0);
    card.write(0x10000, &[9; 4]);
    card.run(&mut root, 400);
    assert!(card.posted.is_empty() && !card.reads.is_empty());
    card.run(&mut root, 400);
    assert_eq!(card.data(0x10000, 4, 0), [9; 4]);
}

#[test]
fn credits_limit_and_return() {
    let mut root = root(RootComplexConfig {
        credit_return: 100,
        ..RootComplexConfig::default()
    });
    mapped(&mut root, 0x10000, 4096);
    root.set_credits(
        CreditType::Posted,
        CreditLimit {
            headers: Some(2),
            data: None,
        },
    );
    let mut card = Card::new();
    for i in 0..4 {
        card.write(0x10000 + i * 4, &[1; 4]);
    }
    card.run(&mut root, 50);
    assert_eq!(card.posted.len(), 2);
    card.run(&mut root, 60);
    assert_eq!(card.posted.len(), 0);
}

#[test]
fn msix_write_becomes_a_message_and_never_passes_data() {
    let mut root = root(RootComplexConfig::default());
    let memory = mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    card.write(0x10000, &[7; 128]);
    card.write(0xfee0_0000, &3_u32.to_le_bytes());
    for _ in 0..200 {
        card.run(&mut root, 1);
        if let Some(message) = root.take_message() {
            assert_eq!((message.address, message.data), (0xfee0_0000, 3));
            let mut data = [0; 128];
            memory.read(0, &mut data).expect("read");
            assert_eq!(data, [7; 128]);
            assert_eq!(root.stats.interrupts, 1);
            return;
        }
    }
    panic!("no message");
}

#[test]
fn broken_tlps_are_violations() {
    let cases: [(&str, Header, usize); 8] = [
        (
            "4 KiB",
            memory(true, 0x10ff8, 4, (0xf, 0xf), CARD_ID, 0),
            16,
        ),
        (
            "MPS",
            memory(true, 0x10000, 65, (0xf, 0xf), CARD_ID, 0),
            260,
        ),
        (
            "byte enables",
            memory(true, 0x10000, 1, (0xf, 0xf), CARD_ID, 0),
            4,
        ),
        (
            "holes",
            memory(true, 0x10000, 3, (0x5, 0xf), CARD_ID, 0),
            12,
        ),
        (
            "requester",
            memory(true, 0x10000, 1, (0xf, 0), 0x0200, 0),
            4,
        ),
        (
            "length",
            memory(true, 0x10000, 4, (0xf, 0xf), CARD_ID, 0),
            8,
        ),
        ("four-DW", [0x6000_0001, 0x0100_000f, 0, 0x10000], 4),
        ("traffic class", [0x4010_0001, 0x0100_000f, 0x10000, 0], 4),
    ];
    for (rule, header, len) in cases {
        let mut root = root(RootComplexConfig::default());
        mapped(&mut root, 0x10000, 8192);
        let mut card = Card::new();
        card.posted.push_back((header, vec![0; len]));
        card.run(&mut root, 300);
        let violations = root.take_violations();
        assert!(
            violations.iter().any(|v| v.rule.contains(rule)),
            "{rule}: {violations:?}"
        );
    }
}

#[test]
fn reused_tag_and_missing_bus_master_are_violations() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    let mut card = Card::new();
    card.read(0x10000, 4, 3);
    card.read(0x10000, 4, 3);
    card.run(&mut root, 300);
    assert!(root.take_violations()[0].rule.contains("outstanding"));
    root.limits.bus_master = false;
    card.read(0x10000, 4, 3);
    card.run(&mut root, 300);
    assert!(root.take_violations()[0].rule.contains("bus mastering"));
}

#[test]
fn changed_beat_under_stall_is_a_violation() {
    let mut root = root(RootComplexConfig::default());
    root.starve_until(CreditType::NonPosted, 100);
    let mut card = Card::new();
    card.read(0x10000, 4, 0);
    card.run(&mut root, 2);
    card.reads.clear();
    card.run(&mut root, 1);
    assert!(root.take_violations()[0].rule.contains("stalled"));
}

#[test]
fn host_read_is_matched_with_its_completion() {
    let mut root = root(RootComplexConfig::default());
    let mut card = Card::new();
    let tag = root.read(0, 0x20_0000_0006, 2);
    card.run(&mut root, 70);
    let (request, _) = card.requests[0].clone();
    assert_eq!(tlp::address(&request), 0x20_0000_0004);
    assert_eq!(tlp::byte_enables(&request), (0xc, 0));
    let header = tlp::completion(&CompletionFields {
        completer: CARD_ID,
        requester: tlp::requester(&request),
        tag: tlp::request_tag(&request),
        status: 0,
        byte_count: 2,
        lower_address: 6,
        length_dw: 1,
    });
    card.completions.push_back((header, vec![0, 0, 0xcd, 0xab]));
    card.run(&mut root, 70);
    let completion = root.take_completion(tag).expect("completed");
    assert_eq!(&completion.data[2..4], [0xcd, 0xab]);
    assert!(root.take_violations().is_empty());
    // The same completion again is one too many.
    card.completions.push_back((header, vec![0, 0, 0xcd, 0xab]));
    card.run(&mut root, 70);
    assert_eq!(root.take_violations().len(), 1);
}

#[test]
fn wire_bytes_are_header_payload_and_eight() {
    let mut root = root(RootComplexConfig::default());
    mapped(&mut root, 0x10000, 4096);
    mapped(&mut root, 0x1_0000_0000, 4096);
    let mut card = Card::new();
    card.write(0x10000, &[0; 64]);
    card.write(0x1_0000_0000, &[0; 64]);
    card.read(0x1_0000_0000, 512, 0);
    card.run(&mut root, 400);
    let stats = root.stats;
    assert_eq!(stats.up_writes.wire_bytes, (12 + 64 + 8) + (16 + 64 + 8));
    assert_eq!(stats.up_reads.wire_bytes, 16 + 8);
    assert_eq!(stats.down_completions.wire_bytes, 2 * (12 + 256 + 8));
    assert_eq!((stats.tlps(), stats.up_writes.payload_bytes), (5, 128));
}

proptest! {
    /// However completions are cut and mixed, each read gets its bytes, with right headers.
    #[test]
    fn split_and_reordered_reads_carry_the_right_bytes(
        seed in any::<u64>(),
        reads in prop::collection::vec((0_u64..8192, 1_usize..=512), 1..20),
    ) {
        let config = RootComplexConfig {
            random_split: true,
            reorder: true,
            latency_jitter: 100,
            stalls: Stalls { completions: 300, reads: 300, ..Stalls::default() },
            ..RootComplexConfig::default()
        };
        let mut root = RootComplex::new(config, WIDTH, seed);
        root.limits.bus_master = true;
        let memory = mapped(&mut root, 0x10000, 16384);
        let data = pattern(16384);
        memory.write(0, &data).expect("write");
        let mut card = Card::new();
        for (tag, (offset, len)) in reads.iter().enumerate() {
            // As the card must: not across 4 KiB, not more DWs than MRRS.
            let room = 4096 - offset % 4096;
            let len = (*len as u64).min(room).min(512 - offset % 4) as usize;
            card.read(0x10000 + offset, len, tag as u8);
        }
        card.run(&mut root, 12_000);
        prop_assert!(root.is_idle());
        prop_assert_eq!(root.take_violations(), vec![]);
        for (tag, (offset, len)) in reads.iter().enumerate() {
            let room = 4096 - offset % 4096;
            let len = (*len as u64).min(room).min(512 - offset % 4) as usize;
            let at = *offset as usize;
            prop_assert_eq!(card.data(0x10000 + offset, len, tag as u8), &data[at..at + len]);
        }
    }

    /// A write of any bytes changes those and no others.
    #[test]
    fn writes_change_exactly_the_enabled_bytes(offset in 0_u64..3000, len in 1_usize..=253) {
        let mut root = root(RootComplexConfig::default());
        let memory = mapped(&mut root, 0x10000, 4096);
        memory.write(0, &[0xaa; 4096]).expect("write");
        let mut card = Card::new();
        card.write(0x10000 + offset, &pattern(len));
        card.run(&mut root, 200);
        let mut expected = vec![0xaa; 4096];
        expected[offset as usize..offset as usize + len].copy_from_slice(&pattern(len));
        let mut seen = vec![0; 4096];
        memory.read(0, &mut seen).expect("read");
        prop_assert_eq!(seen, expected);
    }
}
