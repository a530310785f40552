//! The limit on the bytes of all connections' buffers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The bytes used by all connections.
#[derive(Default)]
pub(crate) struct BufferBudget {
    used: AtomicUsize,
}

/// The share of one connection; returned when dropped.
pub(crate) struct BufferShare {
    budget: Arc<BufferBudget>,
    bytes: usize,
}

impl BufferShare {
    /// An empty share.
    pub(crate) fn new(budget: Arc<BufferBudget>) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Changes the share to `bytes`; false if the sum of all shares then exceeds `most`.
    pub(crate) fn resize(&mut self, bytes: usize, most: usize) -> bool {
        let used = if bytes >= self.bytes {
            let more = bytes - self.bytes;
            self.budget.used.fetch_add(more, Relaxed).saturating_add(more)
        } else {
            self.budget.used.fetch_sub(self.bytes - bytes, Relaxed)
        };
        let grew = bytes > self.bytes;
        self.bytes = bytes;
        !grew || used <= most
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_shares_add_up_and_are_released() {
        let budget = Arc::new(BufferBudget::default());
        let mut first = BufferShare::new(Arc::clone(&budget));
        let mut second = BufferShare::new(Arc::clone(&budget));
        assert!(first.resize(60, 100));
        assert!(!second.resize(60, 100));
        assert!(second.resize(10, 100));
        drop(first);
        assert!(second.resize(100, 100));
        drop(second);
        assert_eq!(budget.used.load(Relaxed), 0);
    }
}
