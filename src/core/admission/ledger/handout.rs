//! Who is next: free slots go to waiting requests, whichever worker they wait on.

use super::PICKUP;
use super::record::{Record, Row};
use super::rules::Rules;
use crate::core::units::Time;

/// Takes back what was handed out and not taken in time, then hands every free slot to the next request that fits.
pub fn hand_out(record: &mut Record, now: Time) {
    take_back(record, now);
    let mut candidates = candidates(record, now);
    if candidates.is_empty() {
        return;
    }
    let mut usage = Usage::of(record, now);
    for place in in_order(&mut candidates) {
        let Some(next) = candidates.get(place) else { continue };
        match usage.verdict(&record.rules, next) {
            Verdict::Fits => {
                usage.take(next.urgency, next.tokens);
                let head = record
                    .rows
                    .get_mut(next.row)
                    .and_then(|row| row.shares.get_mut(next.share))
                    .and_then(|share| share.heads.get_mut(next.head));
                if let Some(head) = head {
                    head.granted = Some(now);
                }
            }
            Verdict::NotNow => {}
            Verdict::Closes => usage.close(next.urgency),
            Verdict::ClosesAll => return,
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

/// A request that a slot could be handed to.
struct Candidate {
    urgency: usize,
    /// Since when it waits; not before the one that its worker would serve ahead of it.
    since: Time,
    row: usize,
    share: usize,
    head: usize,
    tokens: u64,
    /// Whether it goes before newer ones of more urgent classes.
    promoted: bool,
    /// Whether it lets nobody past it while the budget is short.
    blocks: bool,
}

fn candidates(record: &Record, now: Time) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    let able = |row: &&Row| row.is_fresh(now) && !row.slow;
    for (row_at, row) in record.rows.iter().enumerate().filter(|(_, row)| able(row)) {
        for (share_at, share) in row.shares.iter().enumerate().filter(|(_, share)| !share.heads.is_empty()) {
            let rule = record.rules.of(share.class);
            let waited = |head: &super::Head| now.since(head.since);
            let mut since = Time::default();
            for (head_at, head) in share.heads.iter().enumerate() {
                since = since.max(head.since);
                if head.granted.is_some() {
                    continue;
                }
                candidates.push(Candidate {
                    urgency: record.rules.urgency(share.class),
                    since,
                    row: row_at,
                    share: share_at,
                    head: head_at,
                    tokens: head.tokens,
                    promoted: rule
                        .and_then(|rule| rule.promote_after)
                        .is_some_and(|after| waited(head) >= after),
                    blocks: rule.is_some_and(|rule| waited(head) >= rule.block_after),
                });
            }
        }
    }
    candidates
}

/// The places of the candidates in the order in which they are to be served: the oldest of the most urgent class, but
/// before it the oldest promoted one where that is older.
fn in_order(candidates: &mut [Candidate]) -> Vec<usize> {
    candidates.sort_by_key(|next| (next.urgency, next.since, next.row, next.head));
    let mut promoted: Vec<(Time, usize)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, next)| next.promoted)
        .map(|(place, next)| (next.since, place))
        .collect();
    promoted.sort_unstable();
    let mut promoted = promoted.into_iter().peekable();
    let mut order = Vec::with_capacity(candidates.len());
    let mut taken = vec![false; candidates.len()];
    let mut push = |place: usize, order: &mut Vec<usize>| {
        if let Some(taken) = taken.get_mut(place)
            && !std::mem::replace(taken, true)
        {
            order.push(place);
        }
    };
    for (place, next) in candidates.iter().enumerate() {
        while let Some((_, older)) = promoted.next_if(|(since, _)| *since < next.since) {
            push(older, &mut order);
        }
        push(place, &mut order);
    }
    order
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
struct Usage {
    slots: u64,
    tokens: u64,
    /// By urgency; the last one stands for classes that the rules do not know.
    classes: Vec<ClassUsage>,
}

#[derive(Clone, Default)]
struct ClassUsage {
    slots: u64,
    tokens: u64,
    closed: bool,
}

impl Usage {
    fn of(record: &Record, now: Time) -> Usage {
        let classes = vec![ClassUsage::default(); record.rules.classes.len() + 1];
        let mut usage = Usage { slots: 0, tokens: 0, classes };
        for share in record.fresh(now).flat_map(|row| &row.shares) {
            let (mut slots, mut tokens) = (u64::from(share.inflight), share.tokens);
            for head in share.granted() {
                slots += 1;
                tokens = tokens.saturating_add(head.tokens);
            }
            usage.add(record.rules.urgency(share.class), slots, tokens);
        }
        usage
    }

    fn take(&mut self, urgency: usize, tokens: u64) {
        self.add(urgency, 1, tokens);
    }

    fn add(&mut self, urgency: usize, slots: u64, tokens: u64) {
        self.slots += slots;
        self.tokens = self.tokens.saturating_add(tokens);
        if let Some(class) = self.classes.get_mut(urgency) {
            class.slots += slots;
            class.tokens = class.tokens.saturating_add(tokens);
        }
    }

    fn close(&mut self, urgency: usize) {
        if let Some(class) = self.classes.get_mut(urgency) {
            class.closed = true;
        }
    }

    fn verdict(&self, rules: &Rules, next: &Candidate) -> Verdict {
        let Some(class) = self.classes.get(next.urgency).filter(|class| !class.closed) else {
            return Verdict::NotNow;
        };
        let free = bound(rules.concurrency).saturating_sub(self.slots);
        if free == 0 {
            return Verdict::ClosesAll;
        }
        if free <= self.reserved_before(rules, next.urgency) {
            return Verdict::Closes;
        }
        let fits = |used: u64, budget: u64| used == 0 || used.saturating_add(next.tokens) <= budget;
        if let Some(rule) = rules.classes.get(next.urgency) {
            if class.slots >= bound(rule.concurrency) {
                return Verdict::Closes;
            }
            if !fits(class.tokens, rule.tokens) {
                return if next.blocks { Verdict::Closes } else { Verdict::NotNow };
            }
        }
        if !fits(self.tokens, rules.tokens) {
            return if next.blocks { Verdict::ClosesAll } else { Verdict::NotNow };
        }
        Verdict::Fits
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
