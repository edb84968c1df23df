//! One Verilated block with its ports by name.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::slice;

use crate::ffi::{self, Api};
use crate::{Bits, Failure};

/// A model of one block.
pub struct Block {
    api: &'static Api,
    model: NonNull<c_void>,
    name: String,
    ports: HashMap<&'static str, Port>,
    cycle: u64,
}

#[derive(Clone, Copy)]
struct Port {
    data: *mut u8,
    bits: u32,
    bytes: usize,
    output: bool,
}

impl Block {
    /// The model of that name in `build/blocks.rs`, out of reset: inputs are 0 and `rst_ni` was low
    /// for a few cycles. State without a reset is random by `seed`.
    pub fn new(name: &str, seed: u64) -> Result<Self, Failure> {
        let api = ffi::api(name)
            .ok_or_else(|| Failure::Use(format!("no block {name}: add it to build/blocks.rs")))?;
        // SAFETY: no argument is a pointer.
        let model = NonNull::new(unsafe { (api.create)(seed) }).ok_or_else(|| {
            Failure::Use(format!(
                "{name}: an initial block failed, see its parameters, or there is no memory"
            ))
        })?;
        let mut block = Self {
            api,
            model,
            name: name.to_owned(),
            ports: ports(api, model),
            cycle: 0,
        };
        for _ in 0..4 {
            block.tick()?;
        }
        // From here on: what is random before the first edge in reset trips nothing.
        // SAFETY: `model` is valid until it is dropped.
        unsafe { (block.api.assertions)(block.model.as_ptr(), 1) };
        block.set("rst_ni", true);
        block.settle()?;
        Ok(block)
    }

    /// Clock cycles since it was made.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Sets an input.
    ///
    /// # Panics
    ///
    /// If there is no such input: the test is wrong.
    pub fn set(&mut self, name: &str, value: impl Into<Bits>) {
        let port = self.port(name);
        assert!(!port.output, "{name} is an output of {}", self.name);
        let mut value: Bits = value.into();
        for word in (0..8).filter(|word| word * 64 < 512) {
            let left = port.bits.saturating_sub(word * 64);
            if left < 64 {
                value.0[word as usize] &= (1u64 << left) - 1;
            }
        }
        let bytes = value.bytes();
        for (i, byte) in bytes[..port.bytes].iter().enumerate() {
            // SAFETY: a port has `bytes` bytes, which live as long as the model, and nobody else
            // uses them during the call (`&mut self`).
            unsafe { port.data.add(i).write(*byte) };
        }
    }

    /// The value of a port.
    ///
    /// # Panics
    ///
    /// If there is no such port: the test is wrong.
    pub fn get(&self, name: &str) -> Bits {
        let port = self.port(name);
        // SAFETY: as above; the model writes only in calls that take `&mut self`.
        Bits::from_bytes(unsafe { slice::from_raw_parts(port.data, port.bytes) })
    }

    /// The value of a port of at most 64 bits.
    pub fn word(&self, name: &str) -> u64 {
        self.get(name).0[0]
    }

    /// Whether a port of one bit is set.
    pub fn is(&self, name: &str) -> bool {
        self.word(name) != 0
    }

    /// Whether a stream's word is taken in this cycle. Only after [`Self::settle`].
    pub fn fires(&self, valid: &str, ready: &str) -> bool {
        self.is(valid) && self.is(ready)
    }

    /// Lets outputs follow the inputs, without a clock edge.
    pub fn settle(&mut self) -> Result<(), Failure> {
        self.eval()
    }

    /// One clock edge.
    pub fn tick(&mut self) -> Result<(), Failure> {
        self.eval()?;
        self.set("clk_i", true);
        self.eval()?;
        self.cycle += 1;
        self.set("clk_i", false);
        self.eval()
    }

    fn eval(&mut self) -> Result<(), Failure> {
        // SAFETY: `model` is valid until it is dropped.
        if unsafe { (self.api.eval)(self.model.as_ptr()) } == 0 {
            return Ok(());
        }
        let mut buffer = vec![0u8; 16 * 1024];
        // SAFETY: the buffer has the length that is given.
        let length = unsafe {
            (self.api.messages)(
                self.model.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        Err(Failure::Assertion {
            block: self.name.clone(),
            cycle: self.cycle,
            messages: String::from_utf8_lossy(&buffer[..length]).trim().to_owned(),
        })
    }

    fn port(&self, name: &str) -> Port {
        match self.ports.get(name) {
            Some(port) => *port,
            None => panic!("{} has no port {name}", self.name),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: not used afterwards.
        unsafe { (self.api.destroy)(self.model.as_ptr()) };
    }
}

fn ports(api: &Api, model: NonNull<c_void>) -> HashMap<&'static str, Port> {
    let mut count = 0;
    // SAFETY: the model is valid, and so is the pointer to the count.
    let first = unsafe { (api.ports)(model.as_ptr(), &mut count) };
    // SAFETY: the shim has `count` ports there as long as the model lives.
    let ports = unsafe { slice::from_raw_parts(first, count) };
    ports
        .iter()
        .map(|port| {
            // SAFETY: names are constants of the shim.
            let name: &'static CStr = unsafe { CStr::from_ptr(port.name) };
            let port = Port {
                data: port.data.cast(),
                bits: port.bits,
                bytes: (port.bytes as usize).min(64),
                output: port.output != 0,
            };
            (name.to_str().unwrap_or_default(), port)
        })
        .collect()
}
