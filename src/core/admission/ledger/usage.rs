//! What is in use, and whether somebody could have a slot beside it.

use super::record::Record;
use super::rules::Rules;
use crate::core::units::Time;

/// Whether a request may have a slot.
pub enum Verdict {
    Fits,
    /// It does not fit; others may.
    NotNow,
    /// Nobody of its class fits.
    Closes,
    /// Nobody fits.
    ClosesAll,
}

/// What is in use, as far as limits go.
#[derive(Debug, Default)]
pub struct Usage {
    slots: u64,
    tokens: u64,
    /// By urgency; the last one stands for classes that the rules do not know.
    classes: Vec<ClassUsage>,
}

#[derive(Clone, Debug, Default)]
struct ClassUsage {
    slots: u64,
    tokens: u64,
}

impl Usage {
    pub fn count(&mut self, record: &Record, now: Time) {
        (self.slots, self.tokens) = (0, 0);
        self.classes.clear();
        self.classes.resize(record.rules.classes.len() + 1, ClassUsage::default());
        for share in record.fresh(now).flat_map(|row| &row.shares) {
            let (mut slots, mut tokens) = (u64::from(share.inflight), share.tokens);
            for head in share.granted() {
                slots += 1;
                tokens = tokens.saturating_add(head.tokens);
            }
            self.add(record.rules.urgency(share.class), slots, tokens);
        }
    }

    pub fn add(&mut self, urgency: usize, slots: u64, tokens: u64) {
        self.slots += slots;
        self.tokens = self.tokens.saturating_add(tokens);
        if let Some(class) = self.classes.get_mut(urgency) {
            class.slots += slots;
            class.tokens = class.tokens.saturating_add(tokens);
        }
    }

    pub fn free(&self, rules: &Rules) -> u64 {
        bound(rules.concurrency).saturating_sub(self.slots)
    }

    /// Whether nobody of a class may have a slot, whoever waits.
    pub fn is_full(&self, rules: &Rules, urgency: usize) -> bool {
        let limit = rules.classes.get(urgency).map_or(u64::MAX, |rule| bound(rule.concurrency));
        self.classes.get(urgency).is_none_or(|class| class.slots >= limit)
    }

    pub fn verdict(&self, rules: &Rules, urgency: usize, wanted: u64, blocks: bool) -> Verdict {
        let free = self.free(rules);
        if free == 0 {
            return Verdict::ClosesAll;
        }
        if free <= self.reserved_before(rules, urgency) || self.is_full(rules, urgency) {
            return Verdict::Closes;
        }
        let fits = |used: u64, budget: u64| used == 0 || used.saturating_add(wanted) <= budget;
        let (class, rule) = (self.classes.get(urgency), rules.classes.get(urgency));
        let fits_class = class.zip(rule).is_none_or(|(class, rule)| fits(class.tokens, rule.tokens));
        match (fits_class, fits(self.tokens, rules.tokens)) {
            (true, true) => Verdict::Fits,
            (false, _) if blocks => Verdict::Closes,
            (true, false) if blocks => Verdict::ClosesAll,
            _ => Verdict::NotNow,
        }
    }

    /// Slots kept for classes more urgent than this one and not yet used by them.
    fn reserved_before(&self, rules: &Rules, urgency: usize) -> u64 {
        let unused = rules.classes.iter().zip(&self.classes).take(urgency);
        unused.map(|(rule, class)| u64::from(rule.reserved).saturating_sub(class.slots)).sum()
    }
}

fn bound(limit: u32) -> u64 {
    if limit == u32::MAX { u64::MAX } else { u64::from(limit) }
}
