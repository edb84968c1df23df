//! The shim's C interface; `shim/block.cpp` holds the same declarations.

use std::ffi::{c_char, c_void};

/// A port of a model.
#[repr(C)]
pub(crate) struct Port {
    pub name: *const c_char,
    pub data: *mut c_void,
    pub bits: u32,
    pub bytes: u32,
    pub output: u32,
}

/// The functions of one model.
#[repr(C)]
pub(crate) struct Api {
    pub create: unsafe extern "C" fn(seed: u64) -> *mut c_void,
    pub destroy: unsafe extern "C" fn(model: *mut c_void),
    pub ports: unsafe extern "C" fn(model: *mut c_void, count: *mut usize) -> *const Port,
    pub assertions: unsafe extern "C" fn(model: *mut c_void, on: i32),
    pub eval: unsafe extern "C" fn(model: *mut c_void) -> i32,
    pub messages:
        unsafe extern "C" fn(model: *mut c_void, buffer: *mut c_char, size: usize) -> usize,
}

include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// The model of that name in `build/blocks.rs`.
pub(crate) fn api(name: &str) -> Option<&'static Api> {
    let (_, function) = MODELS.iter().find(|(model, _)| *model == name)?;
    // SAFETY: the function returns a pointer to a constant of static lifetime.
    unsafe { function().as_ref() }
}
