//! What the co-simulation tests share: captures, and where they come from.
