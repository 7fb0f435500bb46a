//! Numbers that look random and follow from a seed.

/// A stream of them.
#[derive(Clone)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(mix(seed ^ 0x5A5A_1234))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.any() % (most - least + 1)
    }

    /// Whether something happens that does so once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.any().is_multiple_of(n)
    }

    /// One of `those`.
    pub fn of<T: Clone>(&mut self, those: &[T]) -> T {
        those[self.between(0, those.len() as u64 - 1) as usize].clone()
    }

    /// A time between two arrivals, or of a service: exponential, `mean` on average.
    pub fn exponential(&mut self, mean: f64) -> u64 {
        let share = (self.any() >> 11) as f64 / (1u64 << 53) as f64;
        (-(1.0 - share).ln() * mean) as u64
    }
}

/// One number drawn from another one; the same history has the same delays whatever was left out of it.
pub fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
