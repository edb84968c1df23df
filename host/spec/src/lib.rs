//! Wire types of the Ferronic card.
#![no_std]
#![deny(unsafe_op_in_unsafe_fn, missing_docs)]
