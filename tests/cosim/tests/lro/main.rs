//! Merging of received segments (LRO) by the whole card: what is delivered can be cut back into
//! exactly what was on the wire, and is what the oracle's model delivers. The model is written from
//! the rule table, re-segmentation from the specifications, neither from the RTL.

mod bench;
mod bugs;
mod figures;
mod low;
mod off;
mod ready;
mod relaxed;
mod resets;
mod rules;
mod streams;
mod time;
