//! Who is next: free slots go to waiting requests, whichever worker they wait on.

use super::PICKUP;
use super::record::{Head, Record, Row};
use super::rules::Rules;
use crate::core::units::Time;

/// Hands out slots; what it needs for that is kept and used again.
#[derive(Debug, Default)]
pub struct Handout {
    usage: Usage,
    fronts: Vec<Front>,
}

impl Handout {
    /// Takes back what was handed out and not taken in time, then hands every free slot to the next request that fits.
    pub fn run(&mut self, record: &mut Record, now: Time) {
        take_back(record, now);
        let Handout { usage, fronts } = self;
        usage.count(record, now);
        if usage.free(&record.rules) == 0 {
            return;
        }
        find_fronts(fronts, record, now, usage);
        while let Some(at) = next(fronts) {
            let Some(front) = fronts.get_mut(at) else { return };
            match usage.verdict(&record.rules, front) {
                Verdict::Fits => {
                    usage.add(front.urgency, 1, front.tokens);
                    if let Some(head) = front.head_mut(record) {
                        head.granted = Some(now);
                    }
                }
                Verdict::NotNow => {}
                Verdict::Closes => {
                    let closed = front.urgency;
                    fronts.retain(|front| front.urgency != closed);
                    continue;
                }
                Verdict::ClosesAll => return,
            }
            if !front.advance(record, now) {
                fronts.swap_remove(at);
            }
        }
    }
}

/// A worker that lets a slot lie for long hangs; what it holds in hand goes to others, until it is heard of again.
fn take_back(record: &mut Record, now: Time) {
    for row in &mut record.rows {
        for head in row.shares.iter_mut().flat_map(|share| &mut share.heads) {
            if head.granted.is_some_and(|at| now.since(at) >= PICKUP) {
                head.granted = None;
                row.slow = true;
            }
        }
    }
}

/// The first request of a row's share of a class that no slot has been handed to: a worker's line keeps its order,
/// whatever is waited for.
#[derive(Debug)]
struct Front {
    row: usize,
    share: usize,
    head: usize,
    urgency: usize,
    /// Since when it waits; not before the one that its worker would serve ahead of it.
    since: Time,
    /// Since when a request waits that goes before newer ones of more urgent classes: it or one behind it, since that
    /// one cannot pass.
    promoted: Option<Time>,
    tokens: u64,
    /// Whether it lets nobody past it while the budget is short.
    blocks: bool,
}

impl Front {
    /// Moves on from the present head to the next one; false where there is none.
    fn advance(&mut self, record: &Record, now: Time) -> bool {
        self.head += 1;
        self.find(record, now)
    }

    /// Looks for a head without a slot from the present one on.
    fn find(&mut self, record: &Record, now: Time) -> bool {
        let share = record.rows.get(self.row).and_then(|row| row.shares.get(self.share));
        let behind = share.and_then(|share| share.heads.get(self.head..)).unwrap_or_default();
        let Some(skip) = behind.iter().position(|head| head.granted.is_none()) else { return false };
        let behind = behind.get(skip..).unwrap_or_default();
        let Some(head) = behind.first() else { return false };
        let rule = record.rules.classes.get(self.urgency);
        let promoted = rule.and_then(|rule| rule.promote_after).and_then(|after| {
            behind.iter().map(|head| head.since).filter(|since| now.since(*since) >= after).min()
        });
        self.head += skip;
        self.since = self.since.max(head.since);
        self.promoted = promoted;
        self.tokens = head.tokens;
        self.blocks = rule.is_some_and(|rule| now.since(head.since) >= rule.block_after);
        true
    }

    fn head_mut<'a>(&self, record: &'a mut Record) -> Option<&'a mut Head> {
        record.rows.get_mut(self.row)?.shares.get_mut(self.share)?.heads.get_mut(self.head)
    }
}

/// The fronts of all lines that a slot could be handed to.
fn find_fronts(fronts: &mut Vec<Front>, record: &Record, now: Time, usage: &Usage) {
    fronts.clear();
    let able = |row: &Row| row.is_fresh(now) && !row.slow;
    for (row, at) in record.rows.iter().enumerate().filter(|(_, row)| able(row)) {
        for (share, at) in at.shares.iter().enumerate().filter(|(_, share)| !share.heads.is_empty()) {
            let urgency = record.rules.urgency(at.class);
            if usage.is_full(&record.rules, urgency) {
                continue;
            }
            let since = Time::default();
            let mut front =
                Front { row, share, head: 0, urgency, since, promoted: None, tokens: 0, blocks: false };
            if front.find(record, now) {
                fronts.push(front);
            }
        }
    }
}

/// Which front is to be served next: the oldest of the most urgent class, or the oldest promoted one where that is
/// older.
fn next(fronts: &[Front]) -> Option<usize> {
    let (at, urgent) =
        fronts.iter().enumerate().min_by_key(|(_, front)| (front.urgency, front.since, front.row))?;
    let promoted = fronts
        .iter()
        .enumerate()
        .filter_map(|(at, front)| Some((front.promoted?, front.urgency, front.row, at)));
    let older = promoted.min().filter(|(since, ..)| *since < urgent.since);
    Some(older.map_or(at, |(.., at)| at))
}

enum Verdict {
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
struct Usage {
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
    fn count(&mut self, record: &Record, now: Time) {
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

    fn add(&mut self, urgency: usize, slots: u64, tokens: u64) {
        self.slots += slots;
        self.tokens = self.tokens.saturating_add(tokens);
        if let Some(class) = self.classes.get_mut(urgency) {
            class.slots += slots;
            class.tokens = class.tokens.saturating_add(tokens);
        }
    }

    fn free(&self, rules: &Rules) -> u64 {
        bound(rules.concurrency).saturating_sub(self.slots)
    }

    /// Whether nobody of a class may have a slot, whoever waits.
    fn is_full(&self, rules: &Rules, urgency: usize) -> bool {
        let limit = rules.classes.get(urgency).map_or(u64::MAX, |rule| bound(rule.concurrency));
        self.classes.get(urgency).is_none_or(|class| class.slots >= limit)
    }

    fn verdict(&self, rules: &Rules, next: &Front) -> Verdict {
        let free = self.free(rules);
        if free == 0 {
            return Verdict::ClosesAll;
        }
        if free <= self.reserved_before(rules, next.urgency) || self.is_full(rules, next.urgency) {
            return Verdict::Closes;
        }
        let fits = |used: u64, budget: u64| used == 0 || used.saturating_add(next.tokens) <= budget;
        let (class, rule) = (self.classes.get(next.urgency), rules.classes.get(next.urgency));
        let fits_class = class.zip(rule).is_none_or(|(class, rule)| fits(class.tokens, rule.tokens));
        match (fits_class, fits(self.tokens, rules.tokens)) {
            (true, true) => Verdict::Fits,
            (false, _) if next.blocks => Verdict::Closes,
            (true, false) if next.blocks => Verdict::ClosesAll,
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
