//! Sixteen bytes side by side: a vector of WebAssembly's in the module, plain loops of the same meaning elsewhere.

use std::ops::BitOr;

/// How many bytes stand side by side.
pub const LANES: usize = 16;

/// Sixteen bytes, or what a comparison made of them: a lane of all ones where it holds, else of zeros.
#[derive(Clone, Copy)]
pub struct Lanes(vector::Vector);

impl Lanes {
    /// These bytes, the first one in the first lane.
    #[inline(always)]
    pub fn of(bytes: &[u8; LANES]) -> Lanes {
        Lanes(vector::of(bytes))
    }

    /// Fewer bytes than that, NUL in all lanes behind them.
    pub fn padded(bytes: &[u8]) -> Lanes {
        let mut whole = [0; LANES];
        whole.iter_mut().zip(bytes).for_each(|(lane, byte)| *lane = *byte);
        Lanes::of(&whole)
    }

    /// Where a byte is this one.
    #[inline(always)]
    pub fn is(self, byte: u8) -> Lanes {
        Lanes(vector::is(self.0, byte))
    }

    /// Where a byte is less than `bound`, both read as signed: beyond ASCII is below it.
    #[inline(always)]
    pub fn below(self, bound: u8) -> Lanes {
        Lanes(vector::below(self.0, bound))
    }

    /// The highest bit of each byte, that of the first lane in bit 0.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        vector::bits(self.0)
    }
}

impl BitOr for Lanes {
    type Output = Lanes;

    #[inline(always)]
    fn bitor(self, other: Lanes) -> Lanes {
        Lanes(vector::or(self.0, other.0))
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod vector {
    use std::arch::wasm32::{i8x16_bitmask, i8x16_lt, u8x16, u8x16_eq, u8x16_splat, v128, v128_or};

    pub type Vector = v128;

    #[inline(always)]
    pub fn of(bytes: &[u8; 16]) -> Vector {
        // One load: the compiler sees that these are neighbours.
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
        u8x16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    }

    #[inline(always)]
    pub fn is(lanes: Vector, byte: u8) -> Vector {
        u8x16_eq(lanes, u8x16_splat(byte))
    }

    #[inline(always)]
    pub fn below(lanes: Vector, bound: u8) -> Vector {
        i8x16_lt(lanes, u8x16_splat(bound))
    }

    #[inline(always)]
    pub fn or(one: Vector, other: Vector) -> Vector {
        v128_or(one, other)
    }

    #[inline(always)]
    pub fn bits(lanes: Vector) -> u32 {
        u32::from(i8x16_bitmask(lanes))
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod vector {
    pub type Vector = [u8; 16];

    #[inline(always)]
    pub fn of(bytes: &[u8; 16]) -> Vector {
        *bytes
    }

    #[inline(always)]
    pub fn is(lanes: Vector, byte: u8) -> Vector {
        lanes.map(|lane| if lane == byte { u8::MAX } else { 0 })
    }

    #[inline(always)]
    pub fn below(lanes: Vector, bound: u8) -> Vector {
        lanes.map(|lane| if (lane as i8) < bound as i8 { u8::MAX } else { 0 })
    }

    #[inline(always)]
    pub fn or(one: Vector, other: Vector) -> Vector {
        let mut lanes = one;
        lanes.iter_mut().zip(other).for_each(|(lane, other)| *lane |= other);
        lanes
    }

    #[inline(always)]
    pub fn bits(lanes: Vector) -> u32 {
        lanes.iter().rev().fold(0, |bits, lane| bits << 1 | u32::from(lane >> 7))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_compared_as_its_byte_is() {
        for byte in 0..=u8::MAX {
            let mut bytes = [b'x'; LANES];
            bytes[5] = byte;
            let lane = |lanes: Lanes| lanes.bits() >> 5 & 1 == 1;
            let lanes = Lanes::of(&bytes);
            assert_eq!(lane(lanes), byte >= 0x80);
            for other in 0..=u8::MAX {
                assert_eq!(lane(lanes.is(other)), byte == other);
                assert_eq!(lane(lanes.below(other)), (byte as i8) < other as i8);
                assert_eq!(lane(lanes.is(other) | lanes.is(b'x')), byte == other || byte == b'x');
            }
        }
        assert_eq!(Lanes::padded(b"abc").is(0).bits(), 0xfff8);
        assert_eq!(Lanes::padded(b"").is(0).bits(), 0xffff);
        assert_eq!(Lanes::of(b"0123456789abcdef").is(b'f').bits(), 1 << 15);
    }
}
