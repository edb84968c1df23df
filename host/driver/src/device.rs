//! The network card as a whole.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ferronic_spec::Features;
use ferronic_spec::pci::msix_vectors;
use ferronic_spec::transport::Status;

use crate::completion::{self, Completion, CompletionError, CompletionPolicy, EventRule};
use crate::error::Error;
use crate::lro::{self, LroError, LroOptions, LroRequest, Profile};
use crate::pci::{DmaRegion, Interrupts, PciError, PciFunction, Woken};
use crate::queue::{DmaBuffer, Limits, QueuePair, RxOptions, RxQueue, TxOptions, TxQueue, Wakeup};
use crate::rss::RssError;
use crate::stats::{CardStats, Window};
use crate::virtio::split::{QueueOptions, SplitQueue};
use crate::virtio::{Doorbell, Link, NetConfig, Transport};
use crate::wait::event;

pub use crate::wait::{Event, Wait, Waiter, Wake};

/// Entries of an indirect table.
const INDIRECT_ENTRIES: u16 = 32;

/// How a card is opened.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Queue pairs to use.
    pub queue_pairs: u16,
    /// Virtqueue size; `None`: as the card offers.
    pub ring_size: Option<u16>,
    /// Bytes of a receive buffer, 128 to 65,536.
    pub buffer_size: usize,
    /// Where buffers start in their 64-byte aligned slots: any alignment can be had.
    pub buffer_offset: usize,
    /// Receive buffers posted per queue; `None`: as many as fit into the ring.
    pub rx_buffers: Option<u16>,
    /// Descriptors that a receive buffer is cut into, 1 to 16.
    pub rx_chain: u16,
    /// Use indirect descriptors for what has several parts.
    pub indirect: bool,
    /// Features wanted; those not offered are done without, and so are those whose requirements
    /// are then missing ([`Features::with_requirements`]). Offloads are switched off one by one
    /// here, by taking them from the default.
    pub features: Features,
    /// Whether the card merges received TCP segments; needs GUEST_TSO4 or GUEST_TSO6, GUEST_CSUM and
    /// MRG_RXBUF of `features`. Of the first two those are negotiated that are also asked for here.
    pub lro: LroRequest,
    /// Whether interrupts can be waited for.
    pub wakeup: Wakeup,
    /// How long things may take.
    pub limits: Limits,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self {
            queue_pairs: 1,
            ring_size: None,
            buffer_size: 2048,
            buffer_offset: 0,
            rx_buffers: None,
            rx_chain: 1,
            indirect: true,
            features: Features::CARD
                .union(Features::TX_OFFLOADS)
                .union(Features::LRO),
            lro: LroRequest::default(),
            wakeup: Wakeup::default(),
            limits: Limits::default(),
        }
    }
}

/// Cycles of 8 ns in which a full transmit FIFO leaves on a wire of 1 Gbit/s, and some more.
const LINGER_CYCLES: u64 = 50_000;
/// The same in host time, for a card that does not tell the time.
const LINGER: Duration = Duration::from_micros(400);

/// What the device and its queues share. When the last of them goes, the card is reset before its
/// DMA memory is taken from it.
pub(crate) struct Core {
    transport: Transport,
    closed: AtomicBool,
    // After `drop` has reset the card, this is what is left.
    regions: Mutex<Vec<Arc<DmaRegion>>>,
}

impl Core {
    pub(crate) fn function(&self) -> &dyn PciFunction {
        &**self.transport.function()
    }

    /// DMA memory that outlives the device's use of it.
    pub(crate) fn dma(&self, len: usize) -> Result<Arc<DmaRegion>, PciError> {
        let region = Arc::new(self.function().dma_alloc(len)?);
        self.keep(&region);
        Ok(region)
    }

    /// Keeps memory until the device has been reset.
    pub(crate) fn keep(&self, region: &Arc<DmaRegion>) {
        self.regions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(region));
    }

    fn close(&self) -> Result<(), Error> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.transport.reset().or_else(|e| {
            log::warn!("{e}; trying a function level reset");
            Ok(self.function().reset()?)
        })
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Err(e) = self.close() {
            log::warn!("the card could not be reset at the end: {e}");
        }
    }
}

/// An opened card. Its queues are separate values, see [`QueuePair`].
pub struct Device {
    window: Option<Window>,
    interrupts: Option<Box<dyn Interrupts>>,
    mac: [u8; 6],
    mtu: Option<u16>,
    pairs: u16,
    wakeup: Wakeup,
    core: Arc<Core>,
}

impl Device {
    /// Initialises the card and its queues: they receive and can transmit when this returns.
    pub fn open(
        function: Arc<dyn PciFunction>,
        config: DeviceConfig,
    ) -> Result<(Self, Vec<QueuePair>), Error> {
        let mut transport = Transport::open(Arc::clone(&function), config.limits.reset)?;
        let window = match transport.capabilities().window {
            Some((place, _)) => Some(Window::open(&*function, place)?),
            None => None,
        };
        let offered = transport.offered()?;
        let merged = lro::features(&config.lro, window.as_ref(), config.features, offered)?;
        let wanted = (config.features - Features::LRO) | merged;
        let features = transport.negotiate(wanted, Features::VERSION_1)?;
        let core = Arc::new(Core {
            transport,
            closed: AtomicBool::new(false),
            regions: Mutex::default(),
        });
        Self::start(&core, window, features, config).inspect_err(|_| core.transport.fail())
    }

    fn start(
        core: &Arc<Core>,
        window: Option<Window>,
        features: Features,
        config: DeviceConfig,
    ) -> Result<(Self, Vec<QueuePair>), Error> {
        let transport = &core.transport;
        let pairs = config.queue_pairs;
        let available = transport.num_queues()? / 2;
        if pairs == 0 || pairs > available {
            return Err(Error::Setting {
                what: "the number of queue pairs",
                value: pairs.into(),
                must: format!("the card has {available}"),
            });
        }
        match &window {
            Some(window) => window.set_pairs_in_use(pairs)?,
            None if pairs == 1 => {}
            None => {
                return Err(Error::Window(
                    "there is none, so only one queue pair can be used".into(),
                ));
            }
        }
        if let (Some(window), Some(options)) = (&window, config.lro.options())
            && features.intersects(Features::LRO)
            && let Some(lro) = window.lro()?
        {
            lro.set(options)?;
        }
        let (interrupts, vectors) = match config.wakeup {
            Wakeup::Polled => (None, false),
            Wakeup::Interrupt => (
                Some(core.function().enable_interrupts(msix_vectors(pairs))?),
                true,
            ),
        };
        transport.set_config_vector(vectors.then_some(0))?;
        let mut queues = Vec::new();
        for pair in 0..pairs {
            queues.push(Self::pair(core, pair, features, &config)?);
        }
        let doorbells = queues
            .iter_mut()
            .map(|pair| {
                Ok((
                    enable(core, pair.rx.split(), vectors)?,
                    enable(core, pair.tx.split(), vectors)?,
                ))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        transport.driver_ok()?;
        if transport.status()?.contains(Status::NEEDS_RESET) {
            return Err(Error::NeedsReset);
        }
        for (pair, (rx, tx)) in queues.iter_mut().zip(doorbells) {
            pair.rx.start(rx)?;
            pair.tx.start(tx);
        }
        let net = NetConfig::read(transport, features)?;
        let device = Self {
            window,
            interrupts,
            // Locally administered, for cards without an address of their own.
            mac: net.mac.unwrap_or([0x02, 0xfe, 0x01, 0, 0, 1]),
            mtu: net.mtu,
            pairs,
            wakeup: config.wakeup,
            core: Arc::clone(core),
        };
        Ok((device, queues))
    }

    fn pair(
        core: &Arc<Core>,
        index: u16,
        features: Features,
        config: &DeviceConfig,
    ) -> Result<QueuePair, Error> {
        let indirect = config.indirect && features.contains(Features::INDIRECT_DESC);
        let options = |queue| -> Result<QueueOptions, Error> {
            let max = core.transport.queue_size(queue)?;
            let size = config.ring_size.unwrap_or(max);
            if size == 0 || size > max {
                return Err(Error::Setting {
                    what: "the ring size",
                    value: size.into(),
                    must: format!("a power of two, at most {max}, is needed"),
                });
            }
            Ok(QueueOptions {
                index: queue,
                size,
                event_idx: features.contains(Features::EVENT_IDX),
                indirect_entries: if indirect { INDIRECT_ENTRIES } else { 0 },
            })
        };
        let rx = RxOptions {
            buffer_size: config.buffer_size,
            buffer_offset: config.buffer_offset,
            buffers: config.rx_buffers,
            chain: config.rx_chain,
            indirect,
            mergeable: features.contains(Features::MRG_RXBUF),
            guest_csum: features.contains(Features::GUEST_CSUM),
            merged: features & Features::LRO,
        };
        let tx = TxOptions {
            buffer_offset: config.buffer_offset,
            indirect,
            features,
        };
        let mut rx = RxQueue::new(Arc::clone(core), index, options(2 * index)?, rx)?;
        rx.fill()?;
        let tx = TxQueue::new(Arc::clone(core), index, options(2 * index + 1)?, tx)?;
        Ok(QueuePair { index, rx, tx })
    }

    /// Memory of at least `len` bytes that the card reads in place: frames whose parts lie there are
    /// sent without being copied ([`TxQueue::push_parts`]). Taking it costs system calls; take it
    /// once and use it again.
    ///
    /// # Errors
    /// When the backend has no more.
    pub fn buffer(&self, len: usize) -> Result<DmaBuffer, Error> {
        Ok(DmaBuffer::new(&self.core, len)?)
    }

    /// Features negotiated.
    pub fn features(&self) -> Features {
        self.core.transport.features()
    }

    /// The transport, for diagnostics.
    pub fn transport(&self) -> &Transport {
        &self.core.transport
    }

    /// The card's own window, if it has one.
    pub fn window(&self) -> Option<&Window> {
        self.window.as_ref()
    }

    /// How the card merges received segments; `None` if it does not, because it was not asked to or
    /// because it cannot.
    pub fn lro(&self) -> Result<Option<LroOptions>, Error> {
        let Some(window) = &self.window else {
            return Ok(None);
        };
        if !self.features().intersects(Features::LRO) {
            return Ok(None);
        }
        let options = window.lro()?.map(|lro| lro.options()).transpose()?;
        Ok(options.filter(|options| options.profile != Profile::Off))
    }

    /// Changes how the card merges; what it holds is delivered first.
    ///
    /// # Errors
    /// [`Error::Lro`] if it was not asked for when the card was opened, or cannot be as asked.
    pub fn set_lro(&self, options: &LroOptions) -> Result<(), Error> {
        let negotiated = self.features().intersects(Features::LRO);
        match self.window.as_ref().map(Window::lro).transpose()?.flatten() {
            Some(lro) if negotiated => lro.set(options),
            _ if options.profile == Profile::Off => Ok(()),
            Some(_) => Err(LroError::NotNegotiated.into()),
            None => Err(LroError::NotThere.into()),
        }
    }

    /// Queue pairs that were opened.
    pub fn queue_pairs(&self) -> u16 {
        self.pairs
    }

    /// Changes over how many of them received frames are spread, from pair 0 on. What the card holds
    /// for merging is delivered first. Frames that are in the rings of the others already stay there
    /// for their owners; transmission may go on by every pair.
    ///
    /// # Errors
    /// [`Error::Setting`] for more than were opened, [`Error::Rss`] if the table of
    /// [`Device::set_rss`] names one of those that would go: nothing is changed then.
    pub fn set_receiving_pairs(&self, pairs: u16) -> Result<(), Error> {
        if pairs == 0 || pairs > self.pairs {
            return Err(Error::Setting {
                what: "the number of queue pairs that receive",
                value: pairs.into(),
                must: format!("{} were opened; give 1 to {0}", self.pairs),
            });
        }
        let Some(window) = &self.window else {
            // Without a window there is one.
            return Ok(());
        };
        if window.has_steering()
            && let Some(rss) = self.rss()?
            && rss.last_pair() >= pairs
        {
            let pair = rss.last_pair();
            return Err(RssError::Pair {
                pair,
                in_use: pairs,
            }
            .into());
        }
        window.set_pairs_in_use(pairs)
    }

    /// Over how many queue pairs received frames are spread.
    ///
    /// # Errors
    /// When the card cannot be reached.
    pub fn receiving_pairs(&self) -> Result<u16, Error> {
        self.window.as_ref().map_or(Ok(1), Window::pairs_in_use)
    }

    /// MAC address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Largest MTU, if the card offers one.
    pub fn mtu(&self) -> Option<u16> {
        self.mtu
    }

    /// State of the link.
    pub fn link(&self) -> Result<Link, Error> {
        Ok(NetConfig::read(&self.core.transport, self.features())?.link)
    }

    /// Counters of the card.
    pub fn card_stats(&self) -> Result<CardStats, Error> {
        match &self.window {
            Some(window) => window.stats(),
            None => Err(Error::Window(
                "there is none, so the card has no counters".into(),
            )),
        }
    }

    /// Lets an in-process simulator run. Real devices do nothing.
    pub fn poll(&self) {
        self.core.function().poll();
    }

    /// Waits for an interrupt; `None` if none came in time.
    pub fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error> {
        Wait::wait(self, timeout)
    }

    /// Waits for an interrupt, or until `other` can be read.
    pub fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Wake, Error> {
        Wait::wait_or(self, other, timeout)
    }

    /// The interrupts of a pair's queues, for a thread that has the pair to wait for: the device no
    /// longer reports them. `None` with [`Wakeup::Polled`].
    ///
    /// # Errors
    /// [`PciError::Unsupported`] for a card in the same process, which one thread drives.
    pub fn take_waiter(&mut self, pair: u16) -> Result<Option<Waiter>, Error> {
        let Some(interrupts) = &mut self.interrupts else {
            return Ok(None);
        };
        let vectors = [2 * pair + 1, 2 * pair + 2];
        let interrupts = interrupts.part(&vectors)?;
        Ok(Some(Waiter { interrupts }))
    }

    fn interrupts(&self) -> Result<&dyn Interrupts, Error> {
        self.interrupts.as_deref().ok_or_else(|| Error::Setting {
            what: "the way to be woken",
            value: 0,
            must: "interrupts can only be waited for with Wakeup::Interrupt".into(),
        })
    }

    fn event(&self, vector: u16) -> Result<Event, Error> {
        let event = event(vector);
        if event == Event::Config {
            self.check()?;
        }
        Ok(event)
    }

    /// Waits until frames that completed have left, too: the card completes a frame when it has read
    /// it, and [`Device::close`] takes from it what it has not sent. Enough for 1 Gbit/s.
    pub fn linger(&self) -> Result<(), Error> {
        let Some(window) = &self.window else {
            std::thread::sleep(LINGER);
            return Ok(());
        };
        // A simulated card's time passes with the accesses.
        let start = window.time()?;
        while window.time()?.wrapping_sub(start) < LINGER_CYCLES {
            self.poll();
        }
        Ok(())
    }

    /// Asks the card how it is: an error if it wants to be reset.
    pub fn check(&self) -> Result<(), Error> {
        if self.core.transport.status()?.contains(Status::NEEDS_RESET) {
            return Err(Error::NeedsReset);
        }
        Ok(())
    }

    /// Resets a receive queue and starts it again, empty.
    pub fn reset_queue_rx(&mut self, rx: &mut RxQueue) -> Result<(), Error> {
        self.core.transport.reset_queue(rx.index())?;
        rx.fill()?;
        let doorbell = enable(&self.core, rx.split(), self.vectors())?;
        rx.start(doorbell)
    }

    /// Resets a transmit queue and starts it again, empty. Frames not yet sent are lost; its
    /// completion policy stays.
    pub fn reset_queue_tx(&mut self, tx: &mut TxQueue) -> Result<(), Error> {
        self.core.transport.reset_queue(tx.index())?;
        tx.clear();
        let doorbell = enable(&self.core, tx.split(), self.vectors())?;
        tx.start(doorbell);
        tx.resume()
    }

    /// Completes the frames of a transmit queue by this policy from now on. Until it is called the
    /// owner of a queue arms it himself.
    ///
    /// # Errors
    /// [`Error::Completion`] if this card, or a card opened like this, cannot: nothing is changed then.
    pub fn set_completion(&self, tx: &mut TxQueue, policy: CompletionPolicy) -> Result<(), Error> {
        if !tx.belongs_to(&self.core) {
            return Err(CompletionError::ForeignQueue(tx.pair()).into());
        }
        let rules = policy.rules();
        let interrupts = rules.needs_card() || rules.event != EventRule::Never;
        if interrupts && !self.vectors() {
            return Err(CompletionError::NoInterrupts(policy).into());
        }
        let row = match &self.window {
            Some(window) => window.tx_empty(tx.pair())?,
            None => None,
        };
        let event_idx = tx.split().event_idx();
        tx.adopt(Completion::new(policy, row, event_idx)?)
    }

    /// The policy that suits this card: [`CompletionPolicy::DEFAULT`], or
    /// [`CompletionPolicy::EventIdx`] if it has no ring-empty interrupt, which the log says then, or
    /// the timer if there are no interrupts.
    pub fn default_completion(&self) -> CompletionPolicy {
        if !self.vectors() {
            return CompletionPolicy::Timer {
                period: completion::MAX_AGE,
            };
        }
        if self.window.as_ref().is_some_and(Window::has_tx_empty) {
            return CompletionPolicy::DEFAULT;
        }
        let fallback = CompletionPolicy::EventIdx;
        log::info!(
            "transmitted frames are completed by `{fallback}`: {}",
            CompletionError::NotThere(CompletionPolicy::DEFAULT)
        );
        fallback
    }

    fn vectors(&self) -> bool {
        self.wakeup == Wakeup::Interrupt
    }

    /// Resets the card. Queues that are still around see nothing more.
    pub fn close(self) -> Result<(), Error> {
        self.core.close()
    }
}

impl Wait for Device {
    fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error> {
        let vector = self.interrupts()?.wait(timeout)?;
        vector.map(|vector| self.event(vector)).transpose()
    }

    fn wait_or(&self, other: BorrowedFd<'_>, timeout: Duration) -> Result<Wake, Error> {
        Ok(match self.interrupts()?.wait_or(other, timeout)? {
            Woken::Vector(vector) => Wake::Event(self.event(vector)?),
            Woken::Readable => Wake::Readable,
            Woken::TimedOut => Wake::TimedOut,
        })
    }
}

fn enable(core: &Core, ring: &SplitQueue, vectors: bool) -> Result<Doorbell, Error> {
    let vector = vectors.then_some(ring.index() + 1);
    core.transport
        .enable_queue(ring.index(), ring.size(), ring.addresses(), vector)
}
