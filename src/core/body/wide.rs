//! Text beyond ASCII: UTF-8, checked and counted a block of bytes at a time.

use super::block::{ALL, BLOCK, Block};

/// How far the text at the start of `rest` goes, up to a quote, a backslash, a control character or the body's end, and
/// how many of its bytes only continue a character.
///
/// # Errors
/// Where it is not UTF-8: the offset at which the first character begins that is none.
#[inline(never)]
pub fn run(rest: &[u8]) -> Result<(usize, usize), usize> {
    let (mut len, mut continuations) = (0, 0);
    let mut check = Check::default();
    let mut behind = rest;
    loop {
        let (block, more) = match behind.split_first_chunk() {
            Some((block, more)) => (Block::of(block), more),
            // NUL ends it, where nothing else does.
            None => (Block::padded(behind), &[][..]),
        };
        // Control characters are below 0x20, and so is all beyond ASCII, whose highest bit is set.
        let stops = block.bits(|lanes| lanes.below(0x20) | lanes.is(b'"') | lanes.is(b'\\')) & !block.wide();
        // Up to where it stops, that included: it shows whether the character before it is whole.
        let whole = stops.trailing_zeros().min(BLOCK as u32);
        let (continues, wrong) = check.block(&block);
        if wrong & ((2 << whole) - 1) != 0 {
            return Err(first_fault(rest, len + whole as usize));
        }
        continuations += (continues & ((1 << whole) - 1)).count_ones() as usize;
        len += whole as usize;
        if stops != 0 {
            return Ok((len, continuations));
        }
        behind = more;
    }
}

/// What the bytes before a block demand of it: a bit a lane, for as many lanes as they reach into it.
#[derive(Default)]
pub struct Check {
    /// A continuation.
    continuation: u64,
    /// One that is 0xA0 or more, behind E0.
    from_a0: u64,
    /// One that is less than 0xA0, behind ED: all from there on are surrogates.
    below_a0: u64,
    /// One that is 0x90 or more, behind F0.
    from_90: u64,
    /// One that is less than 0x90, behind F4: Unicode ends there.
    below_90: u64,
}

impl Check {
    /// Whether the next byte has to continue a character.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.continuation != 0
    }

    /// Which bytes of the next block continue a character, and which do not fit to what stands before them, or fit
    /// nowhere.
    #[inline(always)]
    pub fn block(&mut self, block: &Block) -> (u64, u64) {
        let wide = block.wide();
        let continues = block.bits(|lanes| lanes.below(0xc0));
        let of_three_up = wide & !block.bits(|lanes| lanes.below(0xe0));
        let of_four_up = wide & !block.bits(|lanes| lanes.below(0xf0));
        self.continuation |= (wide & !continues) << 1 | of_three_up << 2 | of_four_up << 3;
        let mut wrong = self.continuation ^ continues;
        self.continuation >>= BLOCK;
        // Few texts have these, for which the next byte matters more, or which are none.
        let narrow = block.bits(|lanes| lanes.is(0xe0) | lanes.is(0xed) | lanes.is(0xc0) | lanes.is(0xc1));
        if narrow | self.from_a0 | self.below_a0 != 0 {
            wrong |= self.narrow(block);
        }
        if of_four_up | self.from_90 | self.below_90 != 0 {
            self.from_90 |= block.bits(|lanes| lanes.is(0xf0)) << 1;
            self.below_90 |= block.bits(|lanes| lanes.is(0xf4)) << 1;
            let low = block.bits(|lanes| lanes.below(0x90));
            wrong |=
                self.from_90 & low | self.below_90 & !low | wide & !block.bits(|lanes| lanes.below(0xf5));
            self.from_90 >>= BLOCK;
            self.below_90 >>= BLOCK;
        }
        (continues, wrong & ALL)
    }

    fn narrow(&mut self, block: &Block) -> u64 {
        self.from_a0 |= block.bits(|lanes| lanes.is(0xe0)) << 1;
        self.below_a0 |= block.bits(|lanes| lanes.is(0xed)) << 1;
        let low = block.bits(|lanes| lanes.below(0xa0));
        let wrong = self.from_a0 & low | self.below_a0 & !low;
        self.from_a0 >>= BLOCK;
        self.below_a0 >>= BLOCK;
        wrong | block.bits(|lanes| lanes.is(0xc0) | lanes.is(0xc1))
    }
}

/// Where the first fault is, which shows within `seen` bytes and the one behind them.
#[cold]
pub fn first_fault(rest: &[u8], seen: usize) -> usize {
    let text = rest.get(..seen + 1).unwrap_or(rest);
    std::str::from_utf8(text).err().map_or(seen, |fault| fault.valid_up_to())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the standard library makes of the text up to the first byte that stops it.
    fn book(rest: &[u8]) -> Result<(usize, usize), usize> {
        let stops = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        let text = &rest[..rest.iter().position(stops).unwrap_or(rest.len())];
        let counted = |text: &str| (text.len(), text.len() - text.chars().count());
        std::str::from_utf8(text).map(counted).map_err(|fault| fault.valid_up_to())
    }

    #[test]
    fn every_four_bytes_that_matter_are_judged_as_std_judges_them() {
        let telling = [
            0x00, 0x22, 0x41, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
            0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff,
        ];
        for place in [0, 13, 14, 15, 16, 28, 29, 30, 31, 32] {
            for a in telling {
                for b in telling {
                    for c in telling {
                        let mut text = vec![b'x'; place + 40];
                        for d in telling {
                            text[place..place + 4].copy_from_slice(&[a, b, c, d]);
                            assert_eq!(run(&text), book(&text), "{a:x} {b:x} {c:x} {d:x} at {place}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_fault_and_an_end_are_found_at_every_place() {
        for filling in ["a", "é", "你", "ก", "한", "😀", "\u{10ffff}", "é你😀 "] {
            for pad in 0..BLOCK {
                let good = ["x".repeat(pad), filling.repeat(90 / filling.len())].concat().into_bytes();
                assert_eq!(run(&good), book(&good));
                for at in 0..good.len() {
                    assert_eq!(run(&good[..at]), book(&good[..at]), "{at} of {good:x?}");
                    for byte in [b'"', b'\\', 0, 0x1f, b' ', 0x7f, 0x80, 0xc0, 0xc3, 0xe4, 0xf0, 0xff] {
                        let mut bytes = good.clone();
                        bytes[at] = byte;
                        assert_eq!(run(&bytes), book(&bytes), "{byte:x} at {at} in {good:x?}");
                    }
                }
            }
        }
    }
}
