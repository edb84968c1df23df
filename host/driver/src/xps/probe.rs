//! What a look at the maps touches, for those who count it.

/// Hears of each read of memory that threads share. `()` hears nothing and costs nothing.
pub trait Probe {
    /// `what` is read.
    fn read<T>(&mut self, what: &T);
}

impl Probe for () {
    fn read<T>(&mut self, _: &T) {}
}

/// The addresses that were read.
impl Probe for Vec<usize> {
    fn read<T>(&mut self, what: &T) {
        let first = std::ptr::from_ref(what).addr();
        // A line at a time, the last byte's included.
        let last = first + size_of::<T>().max(1) - 1;
        self.extend((first / 64..=last / 64).map(|line| line * 64));
    }
}
