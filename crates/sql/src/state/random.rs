//! `RAND(seed)`: MySQL's pseudo-random sequences. Each call site has one, which advances over the
//! rows of a statement.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// MySQL's two linear generators.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    first: u64,
    second: u64,
}

/// The generators of a statement's RAND calls, by their places in the statement. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RandomGenerators {
    begun: Arc<Mutex<FxHashMap<i128, Generator>>>,
}

impl Generator {
    const MODULUS: u64 = 0x3fff_ffff;

    /// The generator at the start of a seed's sequence.
    pub(crate) fn seeded(seed: u32) -> Self {
        let first = u64::from(seed.wrapping_mul(0x10001).wrapping_add(55_555_555));
        let second = u64::from(seed.wrapping_mul(0x1000_0001));
        Self { first: first % Self::MODULUS, second: second % Self::MODULUS }
    }

    /// The next number: at least 0 and below 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % Self::MODULUS;
        self.second = (self.first + self.second + 33) % Self::MODULUS;
        self.first as f64 / Self::MODULUS as f64
    }
}

impl RandomGenerators {
    /// The next number of the call at `place`. The first call makes the generator with `begin`.
    pub(crate) fn next(&self, place: i128, begin: impl FnOnce() -> Generator) -> f64 {
        self.begun.lock().entry(place).or_insert_with(begin).next()
    }
}
