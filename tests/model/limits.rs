//! What a policy allows, said again without the filter's words: the referee's own reading of it.

use sluice::core::admission::ledger::Key;
use sluice::core::policy::Class;

/// The limits of what shares slots: a pool, or a class that is in none. Absent = unbounded.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub slots: Option<u64>,
    pub tokens: Option<u64>,
    /// Most urgent first.
    pub classes: Vec<ClassLimits>,
}

#[derive(Clone, Debug)]
pub struct ClassLimits {
    pub key: Key,
    pub slots: Option<u64>,
    pub tokens: Option<u64>,
    pub reserved: u64,
    pub capacity: u64,
    pub promote: Option<u64>,
    /// When a request that does not fit a budget lets nobody past.
    pub block: u64,
}

/// The limits of a class by itself.
pub fn class_limits(class: &Class) -> ClassLimits {
    let queue = &class.queue;
    ClassLimits {
        key: Key::of(&class.name),
        slots: class.concurrency.map(|slots| slots as u64),
        tokens: class.concurrency_tokens,
        reserved: class.reserved as u64,
        capacity: queue.capacity as u64,
        promote: queue.promote_after.map(|after| after.as_nanos() as u64),
        block: queue.promote_after.unwrap_or(queue.timeout / 2).as_nanos() as u64,
    }
}

impl Limits {
    /// The place of a class; one past the last for those that the policy does not know.
    pub fn place(&self, key: Key) -> usize {
        self.classes.iter().position(|class| class.key == key).unwrap_or(self.classes.len())
    }
}

/// What is in use.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    pub all: Count,
    pub classes: Vec<Count>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    pub slots: u64,
    pub tokens: u64,
}

/// Whether a request could have a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Yes,
    NoSlot,
    NoTokensOfClass,
    NoTokensOfPool,
}

impl Usage {
    pub fn none(limits: &Limits) -> Usage {
        Usage { all: Count::default(), classes: vec![Count::default(); limits.classes.len() + 1] }
    }

    pub fn add(&mut self, class: usize, slots: u64, tokens: u64) {
        for count in [&mut self.all, &mut self.classes[class]] {
            count.slots += slots;
            count.tokens += tokens;
        }
    }

    pub fn sub(&mut self, class: usize, slots: u64, tokens: u64) {
        for count in [&mut self.all, &mut self.classes[class]] {
            count.slots -= slots;
            count.tokens -= tokens;
        }
    }

    /// Whether a request of `class` with `tokens` could have a slot beside what is in use.
    pub fn fit(&self, limits: &Limits, class: usize, tokens: u64) -> Fit {
        if let Some(most) = limits.slots {
            let kept: u64 = (0..class)
                .map(|urgent| limits.classes[urgent].reserved.saturating_sub(self.classes[urgent].slots))
                .sum();
            if self.all.slots + 1 + kept > most {
                return Fit::NoSlot;
            }
        }
        let over =
            |used: u64, budget: Option<u64>| used > 0 && budget.is_some_and(|most| used + tokens > most);
        if let Some(own) = limits.classes.get(class) {
            if own.slots.is_some_and(|most| self.classes[class].slots >= most) {
                return Fit::NoSlot;
            }
            if over(self.classes[class].tokens, own.tokens) {
                return Fit::NoTokensOfClass;
            }
        }
        if over(self.all.tokens, limits.tokens) { Fit::NoTokensOfPool } else { Fit::Yes }
    }

    /// What is broken where a request of `class` was let in, reserved slots aside; they are judged by who was passed.
    pub fn broken(&self, limits: &Limits, class: usize) -> Option<String> {
        let over = |count: &Count, slots: Option<u64>, tokens: Option<u64>| {
            slots.is_some_and(|most| count.slots > most)
                || (count.slots > 1 && tokens.is_some_and(|most| count.tokens > most))
        };
        if over(&self.all, limits.slots, limits.tokens) {
            return Some(format!("pool over its limits: {:?} of {limits:?}", self.all));
        }
        let own = limits.classes.get(class)?;
        let count = &self.classes[class];
        over(count, own.slots, own.tokens)
            .then(|| format!("class {class} over its limits: {count:?} of {own:?}"))
    }
}
