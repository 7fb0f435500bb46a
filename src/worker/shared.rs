//! A worker's dealings with the others, by the records that all of them share.

use super::Worker;
use crate::core::units::{Ticket, Time};
use crate::host::Host;

/// Each failed try to write a record means that another worker has written it; so many in a row do not happen.
const TRIES: usize = 1000;

impl<H: Host> Worker<H> {
    /// Long work has been done: others have to hear of this worker before they take it for dead.
    pub fn was_busy(&self) {
        let now = self.host.now();
        if self.engine.borrow().admission.is_unheard(now) {
            self.settle(now, None, true);
        }
        self.share_buffered(now);
    }

    /// Settles with the other workers: whether the request that arrives may go on, `None` where it finds no place.
    /// `changed` tells that this worker's truth has changed.
    pub(super) fn settle(&self, now: Time, arriving: Option<Ticket>, changed: bool) -> Option<bool> {
        let writer = self.writer.get()?;
        let key = self.engine.borrow().admission.record_key();
        if arriving.is_some() && !self.met.replace(true) {
            let connection = self.host.connection();
            self.engine.borrow_mut().admission.meet(connection);
        }
        // Only where something will be written can a guess be trusted: the host then says whether it was right.
        let mut guess = if changed { self.written.borrow_mut().guess() } else { None };
        for _ in 0..TRIES {
            let guessed = guess.is_some();
            let (found, version) = match guess.take() {
                Some((record, version)) => (Some(record), Some(version)),
                None => self.read(&key),
            };
            let mut settlement =
                self.engine.borrow_mut().admission.propose(now, writer, found.as_deref(), arriving);
            if let Some(latest) = settlement.replaced() {
                let connection = self.host.connection();
                if self.engine.borrow_mut().admission.come_back(now, connection, latest) {
                    continue;
                }
            }
            let due = settlement.is_due(changed);
            if guessed && !due {
                continue;
            }
            if due {
                if !self.host.write_shared(&key, settlement.record(), version) {
                    continue;
                }
                self.written.borrow_mut().wrote(settlement.record(), version, found);
                for queue in &settlement.wake {
                    self.host.wake(*queue);
                }
            }
            let admitted = self.engine.borrow_mut().admission.commit(now, settlement, due);
            return due.then_some(admitted);
        }
        None
    }

    fn read(&self, key: &str) -> (Option<Vec<u8>>, Option<u32>) {
        let (found, version) = self.host.read_shared(key).unzip();
        self.written.borrow_mut().found(version);
        (found, version)
    }

    /// Tells the others how many bytes of bodies this worker holds, where that has changed by much.
    pub(super) fn share_buffered(&self, now: Time) {
        let Some(writer) = self.writer.get().filter(|_| self.engine.borrow().intake.buffered.is_due(now))
        else {
            return;
        };
        let key = self.engine.borrow().buffered_key();
        for _ in 0..TRIES {
            let (found, version) = self.host.read_shared(&key).unzip();
            let found = found.unwrap_or_default();
            let (record, others) = self.engine.borrow().intake.buffered.propose(now, writer.uid, &found);
            if self.host.write_shared(&key, &record, version) {
                self.engine.borrow_mut().intake.buffered.commit(now, others);
                return;
            }
        }
    }

    /// Shows the state of all workers. Done where no request ever comes, since that VM does not fail over one.
    pub(super) fn observe(&self, now: Time) {
        let key = self.engine.borrow().admission.record_key();
        let (found, version) = self.host.read_shared(&key).unzip();
        // Newer limits hold from now on, not from the first request under them on. Where somebody else writes first,
        // there is a next time.
        if let Some(record) = self.engine.borrow().admission.announce(found.as_deref()) {
            self.host.write_shared(&key, &record, version);
        }
        let observed = self.engine.borrow().admission.observe(now, found.as_deref());
        for (class, demand, limit) in observed {
            self.host.show(class, &demand, limit);
        }
    }
}
