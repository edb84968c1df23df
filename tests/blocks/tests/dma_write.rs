//! `dma_write`: every byte of each command lands once, in TLPs that PCI Express allows.

use std::collections::VecDeque;

use ferronic_block_tests::{Block, Failure, FrameRam, HostMemory, Rng, ensure, for_seeds, layout};

const RAM_BYTES: u64 = 16384;

#[derive(Clone, Copy, Debug)]
struct Command {
    addr: u64,
    len: u64,
    ptr: u64,
}

/// A TLP that is coming out.
struct Tlp {
    addr: u64,
    dws: u64,
    first: u64,
    last: u64,
    data: Vec<u8>,
}

struct Bench {
    block: Block,
    ram: FrameRam,
    lanes: usize,
    max_payload: u64,
    /// Commands to give, and those that were given and whose `done` did not come.
    todo: VecDeque<Command>,
    given: VecDeque<Command>,
    /// Bytes of the commands since the first of `given` that came out.
    sent: u64,
    halted: bool,
    tlp: Option<Tlp>,
    tlps: u64,
    /// Cycle of the last beat of each command.
    ends: Vec<u64>,
}

impl Bench {
    fn new(width: usize, max_payload: u64, seed: u64, rng: &mut Rng) -> Result<Self, Failure> {
        let bytes = (0..RAM_BYTES).map(|_| rng.next_u64() as u8).collect();
        let mut bench = Self {
            block: Block::new(&format!("dma_write_{width}"), seed)?,
            ram: FrameRam::new(width, bytes),
            lanes: width / 8,
            max_payload,
            todo: VecDeque::new(),
            given: VecDeque::new(),
            sent: 0,
            halted: false,
            tlp: None,
            tlps: 0,
            ends: Vec::new(),
        };
        bench.block.set("max_payload_i", max_payload);
        Ok(bench)
    }

    fn cycle(&mut self, offer: bool, ready: bool) -> Result<(), Failure> {
        let offer = offer || self.block.is("cmd_valid_i");
        let command = self.todo.front().copied().filter(|_| offer);
        self.block.set("cmd_valid_i", command.is_some());
        if let Some(Command { addr, len, ptr }) = command {
            let fields = [("addr", addr), ("len", len), ("ptr", ptr)];
            self.block
                .set("cmd_i", layout("dma_wr_cmd_t").pack(&fields));
        }
        self.block.set("tlp_ready_i", ready);
        self.block.set("halt_i", self.halted);
        self.block.settle()?;

        let taken = self.block.fires("cmd_valid_i", "cmd_ready_o");
        if self.block.fires("tlp_valid_o", "tlp_ready_i") {
            self.beat()?;
        }
        if self.block.is("done_o") {
            let Some(command) = self.given.pop_front() else {
                return Err(Failure::Contract("done without a command".to_owned()));
            };
            ensure!(
                self.halted || self.sent >= command.len,
                "done for {command:x?} after {} bytes",
                self.sent
            );
            self.sent = self.sent.saturating_sub(command.len);
        }
        let read = self.block.is("ram_re_o").then(|| {
            self.ram.read(
                self.block.word("ram_raddr_o"),
                self.block.word("ram_rinc_o"),
            )
        });
        self.block.tick()?;
        if let Some(data) = read {
            self.block.set("ram_rdata_i", data);
        }
        if taken && let Some(command) = self.todo.pop_front() {
            self.given.push_back(command);
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), Failure> {
        let fields = layout("mem_req_t");
        let request = self.block.get("tlp_req_o");
        let first_beat = self.block.is("tlp_sop_o");
        ensure!(
            first_beat == self.tlp.is_none(),
            "sop is {first_beat} in the wrong place"
        );
        let mut tlp = self.tlp.take().unwrap_or_else(|| Tlp {
            addr: fields.get(&request, "addr") << 2,
            dws: fields.get(&request, "dw_len"),
            first: fields.get(&request, "first_be"),
            last: fields.get(&request, "last_be"),
            data: Vec::new(),
        });
        tlp.data
            .extend_from_slice(&self.block.get("tlp_data_o").bytes()[..self.lanes]);
        let len = tlp.dws as usize * 4;
        let ended = tlp.data.len() >= len;
        ensure!(
            ended == self.block.is("tlp_eop_o"),
            "eop is wrong in a TLP of {} DWs",
            tlp.dws
        );
        if ended {
            tlp.data.truncate(len);
            self.tlps += 1;
            self.whole(&tlp)?;
        } else {
            self.tlp = Some(tlp);
        }
        Ok(())
    }

    /// Holds one TLP against the next bytes of the commands.
    fn whole(&mut self, tlp: &Tlp) -> Result<(), Failure> {
        let Tlp {
            addr,
            dws,
            first,
            last,
            ..
        } = *tlp;
        ensure!(
            dws > 0 && dws * 4 <= self.max_payload,
            "a payload of {dws} DWs"
        );
        ensure!(
            addr >> 12 == (addr + dws * 4 - 1) >> 12,
            "{dws} DWs at {addr:#x} cross 4 KiB"
        );
        ensure!(first != 0, "nothing of the first DW is written");
        ensure!(
            (dws == 1) == (last == 0),
            "{dws} DWs with last enables {last:#b}"
        );
        let mut memory = HostMemory::default();
        let touched = memory.write_dws(addr, first, last, &tlp.data);
        let (Some(low), Some(high)) = (touched.first(), touched.last()) else {
            return Err(Failure::Contract("no byte is written".to_owned()));
        };
        ensure!(
            high - low + 1 == touched.len() as u64,
            "enables with a hole: {first:#b} {last:#b}"
        );
        // The command whose turn it is; after a halt, whatever was swallowed is left out.
        let mut start = 0;
        for command in &self.given {
            let at = low.wrapping_sub(command.addr);
            if at < command.len && (self.halted || start + at == self.sent) {
                ensure!(
                    at + touched.len() as u64 <= command.len,
                    "{command:x?}: written up to {high:#x}"
                );
                for address in &touched {
                    let offset = address - command.addr;
                    let wanted = self.ram.byte(((command.ptr + offset) % RAM_BYTES) as usize);
                    let got = memory.byte(*address);
                    ensure!(
                        got == Some(wanted),
                        "{command:x?}: byte {offset} is {got:x?}, not {wanted:#x}"
                    );
                }
                self.sent = start + at + touched.len() as u64;
                if at + touched.len() as u64 == command.len {
                    self.ends.push(self.block.cycle());
                }
                return Ok(());
            }
            start += command.len;
        }
        Err(Failure::Contract(format!(
            "bytes {low:#x} to {high:#x} are not next of {:x?} after {} bytes",
            self.given, self.sent
        )))
    }

    fn run(&mut self, offer: u64, ready: u64, rng: &mut Rng) -> Result<(), Failure> {
        let mut quiet = 0;
        while !(self.todo.is_empty() && self.given.is_empty() && self.block.is("idle_o")) {
            let before = (self.todo.len(), self.given.len(), self.tlps, self.sent);
            self.cycle(rng.chance(offer), rng.chance(ready))?;
            let after = (self.todo.len(), self.given.len(), self.tlps, self.sent);
            quiet = if before == after { quiet + 1 } else { 0 };
            ensure!(
                quiet < 5000,
                "nothing moves; {} commands are open",
                self.given.len()
            );
        }
        Ok(())
    }
}

fn random_command(rng: &mut Rng) -> Command {
    let len = match rng.below(4) {
        0 => rng.range(1, 16),
        1 => rng.range(1, 200),
        2 => rng.range(1, 1526),
        _ => rng.range(1, 9228),
    };
    // In reach of a 4 KiB boundary, below and above 4 GiB.
    let page = rng.pick(&[0x1000, 0xffff_f000, 0x1_0000_0000, 0x12_3456_7000]);
    Command {
        addr: page + rng.below(4096),
        len,
        ptr: rng.below(RAM_BYTES),
    }
}

#[test]
fn every_byte_lands_once_and_in_order() {
    for_seeds(12, |seed, rng| {
        for width in [64, 512] {
            let max_payload = rng.pick(&[128, 256, 512]);
            let mut bench = Bench::new(width, max_payload, seed, rng)?;
            for _ in 0..60 {
                bench.todo.push_back(random_command(rng));
            }
            let (offer, ready) = (rng.pick(&[10, 100]), rng.pick(&[30, 80, 100]));
            bench.run(offer, ready, rng)?;
        }
        Ok(())
    });
}

#[test]
fn every_alignment_of_short_writes() {
    for_seeds(1, |seed, rng| {
        for (width, lanes) in [(64, 8), (512, 64)] {
            let mut bench = Bench::new(width, 128, seed, rng)?;
            for to in 0..4 {
                for from in 0..lanes {
                    for len in 1..=9 {
                        let page = 0x1_0000 + 0x1000 * (from % 3);
                        let addr = page + 0xff8 + to;
                        bench.todo.push_back(Command {
                            addr,
                            len,
                            ptr: from,
                        });
                    }
                }
            }
            bench.run(100, 100, rng)?;
        }
        Ok(())
    });
}

#[test]
fn number_of_tlps_is_the_least_that_payload_and_pages_allow() {
    for_seeds(6, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, 256, seed, rng)?;
            let mut least = 0;
            for _ in 0..40 {
                let command = random_command(rng);
                let mut at = command.addr;
                while at < command.addr + command.len {
                    at = ((at & !3) + 256).min((at & !0xfff) + 0x1000);
                    least += 1;
                }
                bench.todo.push_back(command);
            }
            bench.run(100, 100, rng)?;
            ensure!(
                bench.tlps == least,
                "{} TLPs instead of {least}",
                bench.tlps
            );
        }
        Ok(())
    });
}

#[test]
fn frames_back_to_back_leave_no_bubble() {
    for_seeds(1, |seed, rng| {
        // 1,514 bytes with their header: 191 beats at 64 bits, 24 at 512.
        for (width, limit) in [(64, 193), (512, 26)] {
            let mut bench = Bench::new(width, 256, seed, rng)?;
            for frame in 0..20 {
                bench.todo.push_back(Command {
                    addr: 0x10_0000 + frame * 0x1000,
                    len: 1526,
                    ptr: frame * 1536,
                });
            }
            bench.run(100, 100, rng)?;
            for pair in bench.ends.windows(2) {
                let cycles = pair[1] - pair[0];
                ensure!(cycles <= limit, "{width} bits: {cycles} cycles a frame");
            }
        }
        Ok(())
    });
}

#[test]
fn halt_ends_the_tlp_under_way_and_swallows_the_rest() {
    for_seeds(30, |seed, rng| {
        for width in [64, 512] {
            let mut bench = Bench::new(width, 256, seed, rng)?;
            for i in 0..30 {
                let mut command = random_command(rng);
                command.addr += i << 40; // each command has bytes of its own
                bench.todo.push_back(command);
            }
            let cycles = rng.below(2000 * 64 / width as u64);
            for _ in 0..cycles {
                bench.cycle(true, rng.chance(80))?;
            }
            bench.halted = true;
            bench.cycle(true, false)?;
            let begun = u64::from(bench.tlp.is_some());
            let before = bench.tlps;
            // A TLP that was offered already counts as begun.
            let offered = u64::from(bench.tlp.is_none() && bench.block.is("tlp_valid_o"));
            bench.run(100, 80, rng)?;
            let more = bench.tlps - before;
            ensure!(
                more >= begun && more <= begun + offered + 2,
                "{more} TLPs after the halt, {begun} begun, {offered} offered"
            );
            ensure!(bench.tlp.is_none(), "a TLP was cut off");
        }
        Ok(())
    });
}
