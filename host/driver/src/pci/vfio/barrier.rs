//! Order between memory that the device reads and its registers.
//!
//! A doorbell is a store to device memory, and must not reach the device before what it announces
//! has reached main memory. On x86 it cannot: device memory is uncached and stores stay in order,
//! so that only the compiler has to be held back. Others need a barrier that spans both kinds of
//! memory, which an atomic fence of the language does not promise.

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
use std::sync::atomic::{Ordering, compiler_fence as fence};
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
use std::sync::atomic::{Ordering, fence};

/// Earlier stores, to memory of any kind, are visible to the device before later register writes.
#[inline]
pub(super) fn before_write() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no operands and changes nothing but order.
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("fence w, ow", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "aarch64", target_arch = "riscv64")))]
    fence(Ordering::SeqCst);
}

/// Later loads from memory see at least what the device had written when it answered the register
/// read before.
#[inline]
pub(super) fn after_read() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as in `before_write`.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: as in `before_write`.
    unsafe {
        std::arch::asm!("fence ir, r", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "aarch64", target_arch = "riscv64")))]
    fence(Ordering::SeqCst);
}
