//! Fields by their keys: most members of a body are told not to be read by a glance at their key.

use super::shape::Field;

/// How many rows there are.
const ROWS: usize = 64;
/// No field.
const NONE: u8 = u8::MAX;

/// The fields of a shape, 64 at most, each in the row that its key points to.
pub struct Index {
    /// The first field of each row.
    rows: [u8; ROWS],
    /// The one behind each field in its row.
    behind: [u8; ROWS],
}

impl Index {
    /// That of these fields.
    pub const fn of(fields: &'static [Field]) -> Index {
        let mut index = Index { rows: [NONE; ROWS], behind: [NONE; ROWS] };
        let mut place = fields.len();
        let mut rest = fields;
        // From the last one on, so that the first of a row is its first in the list.
        while let [before @ .., field] = rest {
            place -= 1;
            index.add(place, row(field.key.as_bytes()));
            rest = before;
        }
        index
    }

    /// The place of the first field whose key may be `name`.
    #[inline]
    pub fn first(&self, name: &[u8]) -> Option<u8> {
        self.rows.get(row(name)).copied().filter(|place| *place != NONE)
    }

    /// That of the next one behind the field at `place`.
    #[inline]
    pub fn behind(&self, place: u8) -> Option<u8> {
        self.behind.get(usize::from(place)).copied().filter(|place| *place != NONE)
    }

    /// Puts the field at `place` in front of its row.
    const fn add(&mut self, place: usize, row: usize) {
        let (_, [first, ..]) = self.rows.split_at_mut(row) else { return };
        let (_, [behind, ..]) = self.behind.split_at_mut(place) else { return };
        *behind = *first;
        *first = place as u8;
    }
}

/// The row that a key points to: by its length and its ends, which tell keys apart well enough.
#[inline]
const fn row(key: &[u8]) -> usize {
    let ends = match key {
        [] => 0,
        [only] => *only as usize * 3,
        [first, .., last] => *first as usize * 3 + *last as usize * 7,
    };
    (ends + key.len() * 5) % ROWS
}
