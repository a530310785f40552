//! Random numbers from a printed seed.

/// Pseudo-random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    /// With the seed in `REMORA_SEED`, or a new one.
    pub fn seeded() -> Self {
        let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let seed = seed.unwrap_or(now);
        println!("REMORA_SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn choose<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
