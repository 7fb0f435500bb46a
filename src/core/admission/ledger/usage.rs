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
    /// Nobody of its pool fits.
    ClosesPool,
}

/// What is in use, as far as limits go.
#[derive(Debug, Default)]
pub struct Usage {
    /// By the rules' pools.
    pools: Vec<Count>,
    /// By urgency; the last one stands for classes that the rules do not know.
    classes: Vec<ClassUsage>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    slots: u64,
    tokens: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClassUsage {
    own: Count,
    /// The place of its pool among the rules' pools.
    pool: Option<usize>,
}

impl Count {
    fn add(&mut self, slots: u64, tokens: u64) {
        self.slots += slots;
        self.tokens = self.tokens.saturating_add(tokens);
    }

    /// Whether `wanted` tokens fit the budget beside those in use; alone anybody does.
    fn fits(self, wanted: u64, budget: u64) -> bool {
        self.tokens == 0 || self.tokens.saturating_add(wanted) <= budget
    }
}

impl Usage {
    pub fn count(&mut self, record: &Record, now: Time) {
        let rules = &record.rules;
        self.pools.clear();
        self.pools.resize(rules.pools.len(), Count::default());
        self.classes.clear();
        let place = |pool| rules.pools.iter().position(|rule| rule.pool == pool);
        let pools = rules.classes.iter().map(|rule| rule.pool.and_then(place)).chain([None]);
        self.classes.extend(pools.map(|pool| ClassUsage { own: Count::default(), pool }));
        for share in record.fresh(now).flat_map(|row| &row.shares) {
            let (mut slots, mut tokens) = (u64::from(share.inflight), share.tokens);
            for head in share.granted() {
                slots += 1;
                tokens = tokens.saturating_add(head.tokens);
            }
            self.add(rules.urgency(share.class), slots, tokens);
        }
    }

    pub fn add(&mut self, urgency: usize, slots: u64, tokens: u64) {
        let Some(class) = self.classes.get_mut(urgency) else { return };
        class.own.add(slots, tokens);
        if let Some(pool) = class.pool.and_then(|pool| self.pools.get_mut(pool)) {
            pool.add(slots, tokens);
        }
    }

    /// The place of a class's pool among the rules' pools, if it is in one.
    pub fn pool(&self, urgency: usize) -> Option<usize> {
        self.classes.get(urgency).and_then(|class| class.pool)
    }

    /// Whether nobody of a class may have a slot, whoever waits.
    pub fn is_full(&self, rules: &Rules, urgency: usize) -> bool {
        let limit = rules.classes.get(urgency).map_or(u64::MAX, |rule| bound(rule.concurrency));
        let full = self.classes.get(urgency).is_none_or(|class| class.own.slots >= limit);
        full || self.free(rules, urgency) == 0
    }

    /// Whether nobody of any class may have one.
    pub fn is_all_full(&self, rules: &Rules) -> bool {
        (0..rules.classes.len()).all(|urgency| self.is_full(rules, urgency))
    }

    pub fn verdict(&self, rules: &Rules, urgency: usize, wanted: u64, blocks: bool) -> Verdict {
        let free = self.free(rules, urgency);
        if free == 0 {
            return Verdict::ClosesPool;
        }
        if free <= self.reserved_before(rules, urgency) || self.is_full(rules, urgency) {
            return Verdict::Closes;
        }
        let (class, rule) = (self.classes.get(urgency), rules.classes.get(urgency));
        let fits_class = class.zip(rule).is_none_or(|(class, rule)| class.own.fits(wanted, rule.tokens));
        let (pool, rule) = self.pool(urgency).map(|at| (self.pools.get(at), rules.pools.get(at))).unzip();
        let pool = pool.flatten().zip(rule.flatten());
        let fits_pool = pool.is_none_or(|(pool, rule)| pool.fits(wanted, rule.tokens));
        match (fits_class, fits_pool) {
            (true, true) => Verdict::Fits,
            (false, _) if blocks => Verdict::Closes,
            (true, false) if blocks => Verdict::ClosesPool,
            _ => Verdict::NotNow,
        }
    }

    /// Free slots of a class's pool.
    fn free(&self, rules: &Rules, urgency: usize) -> u64 {
        let Some(at) = self.pool(urgency) else { return u64::MAX };
        let limit = rules.pools.get(at).map_or(u64::MAX, |rule| bound(rule.concurrency));
        limit.saturating_sub(self.pools.get(at).map_or(0, |pool| pool.slots))
    }

    /// Slots of its pool that are kept for classes more urgent than this one and not yet used by them.
    fn reserved_before(&self, rules: &Rules, urgency: usize) -> u64 {
        let Some(pool) = self.pool(urgency) else { return 0 };
        let before = rules.classes.iter().zip(&self.classes).take(urgency);
        let beside = before.filter(|(_, class)| class.pool == Some(pool));
        beside.map(|(rule, class)| u64::from(rule.reserved).saturating_sub(class.own.slots)).sum()
    }
}

fn bound(limit: u32) -> u64 {
    if limit == u32::MAX { u64::MAX } else { u64::from(limit) }
}
