//! `vq_used` against the driver's view of a used ring (virtio 1.2, "The Virtqueue Used Ring").

use ferronic_block_tests::{
    Block, Failure, HostMemory, Rng, clear_queues, configure, ensure, for_seeds, layout,
};

/// One used ring and what the driver may see of it.
struct Ring {
    base: u64,
    size: u64,
    /// All entries since the last reset: id and length.
    entries: Vec<(u64, u64)>,
    /// Of each, whether it has a marker, and the cycle in which it came.
    marks: Vec<(bool, u64)>,
    /// When the index was last reported.
    told_at: u64,
    /// How many of them were published.
    published: u64,
    /// How many the driver sees.
    visible: u64,
    /// How many were reported for interrupts.
    told: u64,
    /// Entries of the frame under way that are still to come.
    frame: u64,
    event: Option<u64>,
}

struct Bench {
    block: Block,
    memory: HostMemory,
    rings: Vec<Ring>,
    /// The write under way: address, DWs, enables, bytes so far.
    write: Option<(u64, u64, u64, u64, Vec<u8>)>,
    data_bytes: usize,
    writes: u64,
}

/// Whether an entry has a marker: some of the transmit queues do.
fn is_marked(q: u64, id: u64, len: u64) -> bool {
    q % 2 == 1 && (id + len).is_multiple_of(5)
}

/// What the test does in a stretch of cycles, in hundredths.
struct Rates {
    append: u64,
    ready: u64,
    quiet: u64,
    event: u64,
}

impl Bench {
    fn new(
        name: &str,
        width: usize,
        queues: u64,
        seed: u64,
        rng: &mut Rng,
    ) -> Result<Self, Failure> {
        let mut bench = Self {
            block: Block::new(name, seed)?,
            memory: HostMemory::default(),
            rings: Vec::new(),
            write: None,
            data_bytes: width / 8,
            writes: 0,
        };
        for q in 0..queues {
            let size = rng.pick(&[1, 2, 4, 8, 64, 512]);
            // Anywhere at 4 bytes, so that entries straddle 4 KiB.
            let base = (q + 1) << 32 | rng.below(1 << 14) << 2;
            bench.rings.push(Ring {
                base,
                size,
                entries: Vec::new(),
                marks: Vec::new(),
                told_at: 0,
                published: 0,
                visible: 0,
                told: 0,
                frame: 0,
                event: None,
            });
            configure(&mut bench.block, q, size, 0)?;
        }
        bench.reset()?;
        Ok(bench)
    }

    /// Reset of the function: rings start over, the driver gives zeroed memory.
    fn reset(&mut self) -> Result<(), Failure> {
        self.block.set("rx_valid_i", false);
        self.block.set("tx_valid_i", false);
        self.block.set("event_valid_i", false);
        self.block.set("pub_ready_i", false);
        self.block.set("wr_ready_i", false);
        clear_queues(&mut self.block, self.rings.len() as u64)?;
        self.memory = HostMemory::default();
        for ring in &mut self.rings {
            ring.entries.clear();
            ring.marks.clear();
            (ring.published, ring.visible, ring.told, ring.frame) = (0, 0, 0, 0);
            ring.event = None;
        }
        Ok(())
    }

    /// One cycle. `offers` holds the entry that each direction offers until it is taken.
    fn cycle(
        &mut self,
        offers: &mut [Option<(u64, u64, u64, bool)>; 2],
        rates: &Rates,
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        for (side, offer) in offers.iter_mut().enumerate() {
            if offer.is_none() && rng.chance(rates.append) {
                let q = rng.below(self.rings.len() as u64 / 2) * 2 + side as u64;
                let ring = &mut self.rings[q as usize];
                // The driver has posted no more than the ring holds.
                let room = ring.size - (ring.entries.len() as u64 - ring.visible);
                if ring.frame == 0 && room > 0 {
                    // A transmit buffer is published by itself.
                    let most = if side == 1 { 1 } else { rng.pick(&[1, 2, 40]) };
                    ring.frame = rng.range(1, room.min(most));
                }
                if ring.frame > 0 && room > 0 {
                    // As the walker and the data path have them: no ring and no frame is larger.
                    *offer = Some((q, rng.below(1 << 11), rng.below(1 << 17), ring.frame == 1));
                }
            }
            let (valid, port, quiet) = [
                ("rx_valid_i", "rx_i", "rx_quiet_i"),
                ("tx_valid_i", "tx_i", "tx_quiet_i"),
            ][side];
            self.block.set(valid, offer.is_some());
            if let Some((q, id, len, publish)) = *offer {
                let fields = [
                    ("q", q),
                    ("id", id),
                    ("len", len),
                    ("publish", u64::from(publish)),
                    ("marker", u64::from(is_marked(q, id, len))),
                ];
                self.block.set(port, layout("vq_used_t").pack(&fields));
            }
            self.block.set(quiet, rng.chance(rates.quiet));
        }
        if !self.block.is("event_valid_i") && rng.chance(rates.event) {
            self.block.set("event_valid_i", true);
            self.block
                .set("event_q_i", rng.below(self.rings.len() as u64));
            self.block.set("event_idx_i", rng.below(1 << 16));
        }
        self.block.set("wr_ready_i", rng.chance(rates.ready));
        self.block.set("pub_ready_i", rng.chance(rates.ready));
        let table_ready = rng.chance(80);
        self.block.set("table_ready_i", table_ready);
        self.block.settle()?;
        // The table of addresses is a RAM: its answer comes in the next cycle, and stays until the
        // registers read it.
        let table = self.block.word("table_q_o") as usize;
        let address = if table_ready {
            let address = self.rings.get(table).map(|ring| ring.base);
            address.filter(|_| self.block.is("table_re_o"))
        } else {
            Some(rng.next_u64())
        };

        let taken: Vec<bool> = [("rx_valid_i", "rx_ready_o"), ("tx_valid_i", "tx_ready_o")]
            .iter()
            .map(|(valid, ready)| self.block.fires(valid, ready))
            .collect();
        let event = self.block.fires("event_valid_i", "event_ready_o");
        let event_q = self.block.word("event_q_i") as usize;
        if event {
            self.rings[event_q].event = Some(self.block.word("event_idx_i"));
        }
        if self.block.fires("wr_valid_o", "wr_ready_i") {
            self.beat()?;
        }
        if self.block.fires("pub_valid_o", "pub_ready_i") {
            let q = self.block.word("pub_q_o") as usize;
            let idx = self.block.word("pub_idx_o");
            let ring = &mut self.rings[q];
            ensure!(
                idx == ring.visible & 0xffff && ring.told < ring.visible,
                "queue {q}: index {idx} reported, {} in memory, {} reported before",
                ring.visible,
                ring.told
            );
            let (now, told) = (self.block.cycle(), ring.told as usize);
            let of = &ring.marks[told..ring.visible as usize];
            ensure!(
                self.block.is("pub_marker_o") == of.iter().any(|(marked, _)| *marked),
                "queue {q}: a marker among {told}.. is reported wrongly"
            );
            // How long the oldest waited. What came while the last visit ended counts from its end,
            // and 8 bits tell no more than 4,096 cycles.
            let (came, age) = (of[0].1, 16 * self.block.word("pub_age_o"));
            let least = now - came.max(ring.told_at);
            ensure!(
                q.is_multiple_of(2)
                    || now - came > 3_000
                    || (age <= now - came + 16 && age + 32 >= least),
                "queue {q}: {age} cycles old, {least} to {} are right",
                now - came
            );
            ring.told = ring.visible;
            ring.told_at = now;
        }
        self.block.tick()?;
        if let Some(address) = address {
            self.block.set("table_addr_i", address);
        }
        if event {
            self.block.set("event_valid_i", false);
        }
        for (side, offer) in offers.iter_mut().enumerate() {
            if taken[side]
                && let Some((q, id, len, publish)) = offer.take()
            {
                let ring = &mut self.rings[q as usize];
                ring.entries.push((id, len));
                let marked = is_marked(q, id, len);
                ring.marks.push((marked, self.block.cycle()));
                ring.frame -= 1;
                if publish {
                    ring.published = ring.entries.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Takes one beat of a write and, with the last, looks at the memory as the driver does.
    fn beat(&mut self) -> Result<(), Failure> {
        let fields = layout("ctl_wr_hdr_t");
        let header = self.block.get("wr_hdr_o");
        let (address, dws, first, last, mut data) = self.write.take().unwrap_or((
            fields.get(&header, "addr") << 2,
            fields.get(&header, "dw_len"),
            fields.get(&header, "first_be"),
            fields.get(&header, "last_be"),
            Vec::new(),
        ));
        data.extend_from_slice(&self.block.get("wr_data_o").bytes()[..self.data_bytes]);
        let len = dws as usize * 4;
        let ended = data.len() >= len;
        ensure!(
            ended == self.block.is("wr_last_o"),
            "last is wrong at byte {} of a write of {dws} DWs",
            data.len()
        );
        if !ended {
            self.write = Some((address, dws, first, last, data));
            return Ok(());
        }
        self.writes += 1;
        ensure!((1..=32).contains(&dws), "a write of {dws} DWs");
        ensure!(
            address >> 12 == (address + dws * 4 - 1) >> 12,
            "a write of {dws} DWs at {address:#x} crosses 4 KiB"
        );
        ensure!(
            (dws == 1) == (last == 0),
            "{dws} DWs with last enables {last:#b}"
        );
        let touched = self.memory.write_dws(address, first, last, &data[..len]);
        let q = (address >> 32) as usize - 1;
        self.check(q, &touched)
    }

    fn check(&mut self, q: usize, touched: &[u64]) -> Result<(), Failure> {
        let ring = &mut self.rings[q];
        let seen = self.memory.number(ring.base + 2, 2);
        for address in touched {
            let offset = address - ring.base;
            let end = 4 + 8 * ring.size;
            match offset {
                2..4 => {}
                // An entry: not one that the driver may be reading, and one that was appended.
                4.. if offset < end => {
                    let slot = (offset - 4) / 8;
                    let free = ring.visible..ring.entries.len() as u64;
                    ensure!(
                        free.clone().any(|index| index % ring.size == slot),
                        "queue {q}: slot {slot} of {} written, entries {free:?} are free",
                        ring.size
                    );
                }
                _ if (end..end + 2).contains(&offset) => {
                    let (event, shown) = (ring.event, self.memory.number(ring.base + end, 2));
                    ensure!(
                        event == Some(shown),
                        "queue {q}: avail_event {shown}, not {event:?}"
                    );
                }
                _ => {
                    return Err(Failure::Contract(format!(
                        "queue {q}: byte {offset} written"
                    )));
                }
            }
        }
        let step = seen.wrapping_sub(ring.visible) & 0xffff;
        let now = ring.visible + step;
        ensure!(
            now <= ring.published,
            "queue {q}: the driver sees {now} entries, {} are published",
            ring.published
        );
        for index in ring.visible..now {
            let at = ring.base + 4 + 8 * (index % ring.size);
            let shown = (self.memory.number(at, 4), self.memory.number(at + 4, 4));
            let wanted = ring.entries[index as usize];
            ensure!(
                shown == wanted,
                "queue {q}: entry {index} is {shown:x?}, not {wanted:x?}"
            );
        }
        ring.visible = now;
        Ok(())
    }

    /// Nothing more is appended: all that is published appears, within `limit` cycles.
    fn drain(&mut self, quiet: u64, limit: u64, rng: &mut Rng) -> Result<(), Failure> {
        let rates = Rates {
            append: 0,
            ready: 90,
            quiet,
            event: 0,
        };
        for _ in 0..limit {
            self.cycle(&mut [None, None], &rates, rng)?;
            let done = |ring: &Ring| ring.visible == ring.published && ring.told == ring.visible;
            if self.rings.iter().all(done) {
                return Ok(());
            }
        }
        let state: Vec<_> = self
            .rings
            .iter()
            .map(|r| (r.entries.len(), r.published, r.visible, r.told))
            .collect();
        Err(Failure::Contract(format!(
            "not shown after {limit} cycles; appended, published, visible, told: {state:?}"
        )))
    }

    fn random(&mut self, cycles: u64, rng: &mut Rng) -> Result<(), Failure> {
        let mut offers = [None, None];
        let mut rates = Rates {
            append: 50,
            ready: 50,
            quiet: 50,
            event: 1,
        };
        for cycle in 0..cycles {
            if cycle % 128 == 0 {
                rates = Rates {
                    append: rng.pick(&[0, 5, 50, 100]),
                    ready: rng.pick(&[10, 50, 100]),
                    quiet: rng.pick(&[0, 50, 100]),
                    event: rng.pick(&[0, 5]),
                };
            }
            self.cycle(&mut offers, &rates, rng)?;
        }
        // What is offered stays offered until it is taken.
        rates = Rates {
            append: 0,
            ready: 90,
            quiet: 100,
            event: 0,
        };
        for _ in 0..2000 {
            if offers.iter().all(Option::is_none) {
                break;
            }
            self.cycle(&mut offers, &rates, rng)?;
        }
        ensure!(
            offers.iter().all(Option::is_none),
            "an entry was not taken in 2000 cycles"
        );
        Ok(())
    }
}

const MODELS: [(&str, usize, u64); 2] = [("vq_used_64", 64, 2), ("vq_used_512", 512, 8)];

#[test]
fn driver_sees_whole_entries_in_order_and_none_before_it_is_published() {
    for_seeds(12, |seed, rng| {
        for (name, width, queues) in MODELS {
            let mut bench = Bench::new(name, width, queues, seed, rng)?;
            bench.random(6000, rng)?;
            bench.drain(100, 2000, rng)?;
        }
        Ok(())
    });
}

#[test]
fn entries_appear_after_the_hold_time_if_it_is_never_quiet() {
    for_seeds(6, |seed, rng| {
        for (name, width, queues) in MODELS {
            let mut bench = Bench::new(name, width, queues, seed, rng)?;
            bench.random(500, rng)?;
            // HoldCycles is 200 in this model.
            bench.drain(0, 200 + 400, rng)?;
        }
        Ok(())
    });
}

#[test]
fn entry_appended_while_its_queue_is_served_is_not_forgotten() {
    // One pair: the work list holds as many queues as there are.
    for_seeds(10, |seed, rng| {
        let mut bench = Bench::new("vq_used_64", 64, 2, seed, rng)?;
        let mut offers = [None, None];
        for _ in 0..3000 {
            let rates = Rates {
                append: rng.pick(&[3, 100]),
                ready: 100,
                quiet: 100,
                event: 0,
            };
            bench.cycle(&mut offers, &rates, rng)?;
        }
        bench.drain_offers(offers, rng)?;
        bench.drain(100, 500, rng)
    });
}

impl Bench {
    fn drain_offers(
        &mut self,
        mut offers: [Option<(u64, u64, u64, bool)>; 2],
        rng: &mut Rng,
    ) -> Result<(), Failure> {
        let rates = Rates {
            append: 0,
            ready: 100,
            quiet: 100,
            event: 0,
        };
        for _ in 0..500 {
            self.cycle(&mut offers, &rates, rng)?;
        }
        ensure!(
            offers.iter().all(Option::is_none),
            "an entry was not taken in 500 cycles"
        );
        Ok(())
    }
}

#[test]
fn batch_of_entries_is_one_write_and_one_index() {
    for_seeds(1, |seed, rng| {
        for (name, width, queues) in MODELS {
            let mut bench = Bench::new(name, width, queues, seed, rng)?;
            for ring in &mut bench.rings {
                ring.size = 64;
                ring.base &= !0xfff;
            }
            for q in 0..queues {
                configure(&mut bench.block, q, 64, 0)?;
            }
            let rates = Rates {
                append: 0,
                ready: 100,
                quiet: 0,
                event: 0,
            };
            for id in 0..8 {
                bench.rings[1].frame = 1;
                let mut offers = [None, Some((1, id, 0, true))];
                while offers[1].is_some() {
                    bench.cycle(&mut offers, &rates, rng)?;
                }
            }
            bench.drain(0, 100, rng)?;
            ensure!(
                bench.writes == 2,
                "{name}: {} writes for 8 entries",
                bench.writes
            );
        }
        Ok(())
    });
}

#[test]
fn rings_start_over_after_a_reset_of_the_function() {
    for_seeds(6, |seed, rng| {
        for (name, width, queues) in MODELS {
            let mut bench = Bench::new(name, width, queues, seed, rng)?;
            for _ in 0..4 {
                let cycles = rng.range(200, 800);
                bench.random(cycles, rng)?;
                // The reset comes when DMA is idle: no write is half out.
                while bench.write.is_some() || bench.block.is("wr_valid_o") {
                    let rates = Rates {
                        append: 0,
                        ready: 100,
                        quiet: 0,
                        event: 0,
                    };
                    bench.cycle(&mut [None, None], &rates, rng)?;
                }
                bench.reset()?;
            }
            bench.random(1000, rng)?;
            bench.drain(100, 2000, rng)?;
        }
        Ok(())
    });
}
