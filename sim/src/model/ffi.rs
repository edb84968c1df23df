//! The shim's C interface; `shim/shim.h` holds the same declarations.

use std::ffi::{c_char, c_void};

use super::{Inputs, Outputs};

/// The functions of one Verilated model.
#[repr(C)]
pub(super) struct Api {
    pub data_w: u32,
    pub create: unsafe extern "C" fn(seed: u64, strap: *const u32, words: usize) -> *mut c_void,
    pub set_strap: unsafe extern "C" fn(model: *mut c_void, strap: *const u32, words: usize),
    pub destroy: unsafe extern "C" fn(model: *mut c_void),
    pub step:
        unsafe extern "C" fn(model: *mut c_void, input: *const Inputs, output: *mut Outputs) -> i32,
    pub messages:
        unsafe extern "C" fn(model: *mut c_void, buffer: *mut c_char, size: usize) -> usize,
    pub trace: unsafe extern "C" fn(model: *mut c_void, path: *const c_char) -> i32,
    pub coverage: unsafe extern "C" fn(model: *mut c_void, path: *const c_char) -> i32,
}

#[cfg(feature = "w64")]
unsafe extern "C" {
    fn ferronic64_api() -> *const Api;
}
#[cfg(feature = "w128")]
unsafe extern "C" {
    fn ferronic128_api() -> *const Api;
}
#[cfg(feature = "w256")]
unsafe extern "C" {
    fn ferronic256_api() -> *const Api;
}
#[cfg(feature = "w512")]
unsafe extern "C" {
    fn ferronic512_api() -> *const Api;
}

/// The model for `data_w`, if this build has it.
pub(super) fn api(data_w: u32) -> Option<&'static Api> {
    // SAFETY: the functions return a pointer to a constant of static lifetime.
    let pointer = unsafe {
        match data_w {
            #[cfg(feature = "w64")]
            64 => ferronic64_api(),
            #[cfg(feature = "w128")]
            128 => ferronic128_api(),
            #[cfg(feature = "w256")]
            256 => ferronic256_api(),
            #[cfg(feature = "w512")]
            512 => ferronic512_api(),
            _ => return None,
        }
    };
    // SAFETY: as above; null only if the shim were broken.
    unsafe { pointer.as_ref() }
}

/// The widths that this build has.
pub(super) const WIDTHS: &[u32] = &[
    #[cfg(feature = "w64")]
    64,
    #[cfg(feature = "w128")]
    128,
    #[cfg(feature = "w256")]
    256,
    #[cfg(feature = "w512")]
    512,
];
