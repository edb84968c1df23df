//! Every developer command of Ferronic.

fn main() {}
