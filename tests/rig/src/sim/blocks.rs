//! The KV cache: so many blocks, some in use, some free, and some of the free ones with content worth finding again.

use std::collections::{BTreeMap, HashMap};

/// What stands in a full block. Equal contents have equal names, which is what a hash of the tokens up to the block's
/// end is for in a real server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// Whose text: a prefix that several share, or one sequence alone.
    pub text: Text,
    /// Which block of that text, from 0.
    pub index: u32,
}

/// A text that blocks can be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Text {
    /// The prefix of this name.
    Shared(u64),
    /// The sequence of this number.
    Own(u64),
}

/// The blocks of one replica. With prefix caching, a full block that nobody uses any more stays known until its place
/// is needed: blocks without known content are taken first, then the one that has been free the longest.
#[derive(Debug)]
pub struct Blocks {
    total: u32,
    /// Free, without known content.
    blank: u32,
    caching: bool,
    known: HashMap<Content, Use>,
    /// The known ones that nobody uses, by the moment they became free.
    idle: BTreeMap<u64, Content>,
    moment: u64,
}

#[derive(Debug)]
enum Use {
    By(u32),
    IdleSince(u64),
}

impl Blocks {
    /// `total` blocks, all free.
    pub fn new(total: u32, caching: bool) -> Blocks {
        Blocks { total, blank: total, caching, known: HashMap::new(), idle: BTreeMap::new(), moment: 0 }
    }

    /// How many can be had.
    pub fn free(&self) -> u32 {
        self.blank + u32::try_from(self.idle.len()).unwrap_or(u32::MAX)
    }

    /// How many are in use.
    pub fn used(&self) -> u32 {
        self.total - self.free()
    }

    /// How many of `wanted`, from the first on, are known; and how many of those are free and would not be any more.
    pub fn hits(&self, wanted: impl Iterator<Item = Content>) -> (u32, u32) {
        let (mut hits, mut idle) = (0, 0);
        for content in wanted {
            match self.known.get(&content) {
                Some(Use::By(_)) => {}
                Some(Use::IdleSince(_)) => idle += 1,
                None => break,
            }
            hits += 1;
        }
        (hits, idle)
    }

    /// Takes the block of this content into use once more; false when it is not known.
    pub fn share(&mut self, content: Content) -> bool {
        match self.known.get_mut(&content) {
            Some(Use::By(users)) => *users += 1,
            Some(idle @ Use::IdleSince(_)) => {
                if let Use::IdleSince(moment) = std::mem::replace(idle, Use::By(1)) {
                    self.idle.remove(&moment);
                }
            }
            None => return false,
        }
        true
    }

    /// Takes a free block into use; false when there is none.
    pub fn take(&mut self) -> bool {
        if self.blank > 0 {
            self.blank -= 1;
        } else if let Some((_, oldest)) = self.idle.pop_first() {
            self.known.remove(&oldest);
        } else {
            return false;
        }
        true
    }

    /// Makes a block in use known by its content, now that it is full; false when it stays nameless, because nothing is
    /// cached or another block has the same content.
    pub fn name(&mut self, content: Content) -> bool {
        if !self.caching || self.known.contains_key(&content) {
            return false;
        }
        self.known.insert(content, Use::By(1));
        true
    }

    /// Ends one use of a block: of the known one of this content, or of a nameless one.
    pub fn give_back(&mut self, content: Option<Content>) {
        let Some(content) = content else {
            self.blank += 1;
            return;
        };
        match self.known.get_mut(&content) {
            Some(Use::By(users)) if *users > 1 => *users -= 1,
            Some(used) => {
                *used = Use::IdleSince(self.moment);
                self.idle.insert(self.moment, content);
                self.moment += 1;
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(index: u32) -> Content {
        Content { text: Text::Shared(7), index }
    }

    fn hits(blocks: &Blocks) -> (u32, u32) {
        blocks.hits((0..9).map(content))
    }

    #[test]
    fn what_is_given_back_is_found_until_its_place_is_needed_the_oldest_first() {
        let mut blocks = Blocks::new(3, true);
        for index in 0..3 {
            assert!(blocks.take() && blocks.name(content(index)));
        }
        assert!(!blocks.take());
        assert_eq!((hits(&blocks), blocks.used()), ((3, 0), 3));
        // As a sequence does: the end first, so that what is found again is a beginning.
        for index in (0..3).rev() {
            blocks.give_back(Some(content(index)));
        }
        assert_eq!((hits(&blocks), blocks.used(), blocks.free()), ((3, 3), 0, 3));
        assert!(blocks.take());
        assert_eq!(hits(&blocks), (2, 2));
        assert!(blocks.share(content(0)));
        assert_eq!((hits(&blocks), blocks.free()), ((2, 1), 1));
        assert!(blocks.take() && !blocks.take());
        assert_eq!(hits(&blocks), (1, 0));
    }

    #[test]
    fn a_block_is_free_when_its_last_user_leaves() {
        let mut blocks = Blocks::new(1, true);
        assert!(blocks.take() && blocks.name(content(0)) && blocks.share(content(0)));
        blocks.give_back(Some(content(0)));
        assert_eq!(blocks.free(), 0);
        blocks.give_back(Some(content(0)));
        assert_eq!(blocks.free(), 1);
    }

    #[test]
    fn nothing_is_known_without_caching() {
        let mut blocks = Blocks::new(2, false);
        assert!(blocks.take() && !blocks.name(content(0)) && !blocks.share(content(0)));
        blocks.give_back(None);
        assert_eq!((hits(&blocks), blocks.free()), ((0, 0), 2));
    }
}
