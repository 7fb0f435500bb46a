//! The bytes of a string that are looked at together.

use super::lanes::{LANES, Lanes};

/// How many bytes those are: two times as many as stand side by side, since what follows from a comparison is cheaper for
/// all of them together.
pub const BLOCK: usize = 2 * LANES;

/// A bit for each byte.
pub const ALL: u64 = (1 << BLOCK) - 1;

/// So many bytes.
pub struct Block(Lanes, Lanes);

impl Block {
    /// These bytes.
    #[inline(always)]
    pub fn of(bytes: &[u8; BLOCK]) -> Block {
        match bytes.as_chunks() {
            ([low, high], _) => Block(Lanes::of(low), Lanes::of(high)),
            _ => Block::padded(bytes),
        }
    }

    /// Fewer bytes, NUL behind them.
    #[inline(never)]
    pub fn padded(bytes: &[u8]) -> Block {
        let (low, high) = bytes.split_at_checked(LANES).unwrap_or((bytes, &[]));
        Block(Lanes::padded(low), Lanes::padded(high))
    }

    /// The first bytes of `rest`, NUL behind them where there are fewer.
    #[inline(always)]
    pub fn first(rest: &[u8]) -> Block {
        rest.first_chunk().map_or_else(|| Block::padded(rest), Block::of)
    }

    /// Where a comparison holds, a bit a byte.
    #[inline(always)]
    pub fn bits(&self, compare: impl Fn(Lanes) -> Lanes) -> u64 {
        u64::from(compare(self.0).bits()) | u64::from(compare(self.1).bits()) << LANES
    }

    /// Where a byte is beyond ASCII.
    #[inline(always)]
    pub fn wide(&self) -> u64 {
        self.bits(|lanes| lanes)
    }
}
