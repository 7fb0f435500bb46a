//! The ledger's record as this worker last wrote it: what nobody has written since need not be read again.
//!
//! The host does not tell which version a record has once it was written. Versions count up by one with every record
//! that anybody writes, so that this one's is the next after the version it replaced or, where somebody was quicker
//! with another record, a later one; and what others write into this record comes later still. So the next number is
//! this worker's own version or nobody's: a guess that the host refuses or that is right. Reading costs about 1 us, a
//! wrong guess a third of that; who finds others at work leaves off guessing until they have stopped.

/// A record and what is known of its version.
#[derive(Debug, Default)]
pub struct Written {
    record: Vec<u8>,
    /// The version that it must have; `None` where that cannot be known.
    version: Option<u32>,
    /// Whether nobody else had written when this worker last looked.
    alone: bool,
}

impl Written {
    /// The record and its version, where it is likely still the one that this worker wrote. To be used once.
    pub fn guess(&mut self) -> Option<(Vec<u8>, u32)> {
        let version = self.version.filter(|_| self.alone)?;
        self.version = None;
        Some((std::mem::take(&mut self.record), version))
    }

    /// The record was read at `version`; `None` where there is none.
    pub fn found(&mut self, version: Option<u32>) {
        self.alone = version.is_some() && self.version == version;
    }

    /// `record` was written in the place of the one of `version`; the memory of `old` is used again.
    pub fn wrote(&mut self, record: &[u8], version: Option<u32>, old: Option<Vec<u8>>) {
        self.record = old.unwrap_or_default();
        self.record.clear();
        self.record.extend_from_slice(record);
        self.version = version.and_then(|version| version.checked_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_unchanged_is_guessed() {
        let mut written = Written::default();
        assert_eq!(written.guess(), None);
        written.wrote(b"one", Some(4), None);
        assert_eq!(written.guess(), None, "others may be at work");
        written.found(Some(5));
        assert_eq!(written.guess(), Some((b"one".to_vec(), 5)));
        assert_eq!(written.guess(), None, "it is being replaced");
        written.wrote(b"two", Some(5), Some(b"one".to_vec()));
        assert_eq!(written.guess(), Some((b"two".to_vec(), 6)));
    }

    #[test]
    fn others_end_it() {
        let mut written = Written::default();
        written.wrote(b"one", Some(4), None);
        written.found(Some(6));
        assert_eq!(written.guess(), None, "somebody else has written");
        written.wrote(b"two", Some(6), None);
        written.found(Some(7));
        assert!(written.guess().is_some());
        written.found(Some(9));
        written.wrote(b"three", Some(9), None);
        assert_eq!(written.guess(), None, "the guess was wrong");
    }

    #[test]
    fn a_version_that_cannot_be_known_is_not_guessed() {
        let mut written = Written::default();
        for unknown in [None, Some(u32::MAX)] {
            written.wrote(b"one", unknown, None);
            written.found(None);
            assert_eq!(written.guess(), None);
        }
    }
}
