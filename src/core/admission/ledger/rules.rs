//! The limits of a domain, as they stand in its record: the newest configuration's hold for everybody.

use std::time::Duration;

/// A class or a pool by its name, so that reordering or reloading a policy keeps its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

impl Key {
    /// The key of a name (FNV-1a).
    pub fn of(name: &str) -> Key {
        Key(name.bytes().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)))
    }
}

/// The limits of all pools and classes of a domain: those of the newest configuration, and behind them those of
/// classes that only older ones know and that are in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The pools that classes are in.
    pub pools: Vec<PoolRule>,
    /// The classes; of two in one pool the more urgent one comes first.
    pub classes: Vec<ClassRule>,
    /// The latest connection known that came under the newest configuration. Later ones to the same address do so, too,
    /// unless Envoy has gone back to an older configuration since: it tells nobody where that one is still at work.
    pub latest: Connection,
}

/// A client's connection to Envoy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Its number; those of the process are counted up.
    pub id: u64,
    /// The key of the address that it came to, and so of the listener.
    pub to: Key,
}

impl Connection {
    /// The connection of number `id` to an address.
    pub fn new(id: u64, to: &str) -> Connection {
        Connection { id, to: Key::of(to) }
    }

    /// Whether Envoy took it on the same listener after `other`.
    pub fn is_after(self, other: Connection) -> bool {
        self.to == other.to && self.id > other.id
    }
}

/// The limits of a pool. `MAX` = unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolRule {
    /// Which pool.
    pub pool: Key,
    /// When the configuration that says so was read; of two the newer one holds.
    pub generation: u64,
    /// Most requests in flight.
    pub concurrency: u32,
    /// Most estimated tokens in flight; one request over it runs alone.
    pub tokens: u64,
}

/// The limits of one class. `MAX` = unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassRule {
    /// Which class.
    pub class: Key,
    /// When the configuration that says so was read; of two the newer one holds.
    pub generation: u64,
    /// The pool that it is in, if any.
    pub pool: Option<Key>,
    /// Most requests in flight.
    pub concurrency: u32,
    /// Most estimated tokens in flight; one request over it runs alone.
    pub tokens: u64,
    /// Slots of the pool that less urgent classes may not take.
    pub reserved: u32,
    /// Most requests waiting.
    pub capacity: u32,
    /// After this wait a request goes before newer ones of more urgent classes; `None` = never.
    pub promote_after: Option<Duration>,
    /// After this wait a request that does not fit the token budget lets nobody past it.
    pub block_after: Duration,
}

/// The most of a class that there can be in flight, over all workers; `None` = unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Requests.
    pub slots: Option<u32>,
    /// Their estimated tokens, but for one request that is larger by itself.
    pub tokens: Option<u64>,
}

impl Rules {
    /// The place of a class in the order of urgency; one that is not known comes last.
    pub fn urgency(&self, class: Key) -> usize {
        self.classes.iter().position(|rule| rule.class == class).unwrap_or(self.classes.len())
    }

    /// The rule of a class, if it is known.
    pub fn of(&self, class: Key) -> Option<&ClassRule> {
        self.classes.iter().find(|rule| rule.class == class)
    }

    /// The rule of a pool, if it is known.
    pub fn pool(&self, pool: Key) -> Option<&PoolRule> {
        self.pools.iter().find(|rule| rule.pool == pool)
    }

    /// Whether these know all classes of `own`, the rules of one configuration, as that one does or newer.
    pub fn hold(&self, own: &Rules) -> bool {
        own.classes
            .iter()
            .all(|rule| self.of(rule.class).is_some_and(|known| known.generation >= rule.generation))
    }

    /// The generation of the newest configuration.
    pub fn newest(&self) -> u64 {
        self.classes.iter().map(|rule| rule.generation).max().unwrap_or_default()
    }

    /// Whether these are what `own`, the rules of one configuration, say, whenever that was read.
    pub fn agree(&self, own: &Rules) -> bool {
        let newest = self.newest();
        let class = |rule: &ClassRule| ClassRule { generation: newest, ..*rule };
        let pool = |rule: &PoolRule| PoolRule { generation: newest, ..*rule };
        let classes = self.classes.iter().filter(|rule| rule.generation == newest);
        classes.copied().eq(own.classes.iter().map(class))
            && own.pools.iter().all(|rule| self.pool(rule.pool) == Some(&pool(rule)))
    }

    /// Makes these the rules of a configuration that was read at `generation`.
    pub fn date(&mut self, generation: u64) {
        self.classes.iter_mut().for_each(|rule| rule.generation = generation);
        self.pools.iter_mut().for_each(|rule| rule.generation = generation);
    }

    /// Takes over what `own`, the rules of one configuration, know better. What only older ones know stays if it is
    /// `in_use`.
    pub fn adopt(&mut self, own: &Rules, in_use: impl Fn(Key) -> bool) {
        let generation = own.classes.first().map_or(0, |rule| rule.generation);
        // Its own come in again as a whole: what is added behind those that stand there would be out of order.
        let mine = |rule: &ClassRule| rule.generation == generation && own.of(rule.class).is_some();
        let (mut classes, older): (Vec<_>, Vec<_>) =
            self.classes.drain(..).partition(|rule| rule.generation >= generation && !mine(rule));
        for rule in own.classes.iter().chain(older.iter().filter(|rule| in_use(rule.class))) {
            if classes.iter().all(|known| known.class != rule.class) {
                classes.push(*rule);
            }
        }
        let (mut pools, older): (Vec<_>, Vec<_>) =
            self.pools.drain(..).partition(|rule| rule.generation >= generation);
        for rule in own.pools.iter().chain(&older) {
            if pools.iter().all(|known| known.pool != rule.pool) {
                pools.push(*rule);
            }
        }
        pools.retain(|pool| classes.iter().any(|class| class.pool == Some(pool.pool)));
        *self = Rules { pools, classes, latest: self.latest };
    }

    /// The most of a class that there can be in flight: its own limits, or what its pool leaves it beside the slots
    /// that are kept for more urgent classes.
    pub fn limit(&self, class: Key) -> Limit {
        let urgency = self.urgency(class);
        let Some(own) = self.classes.get(urgency) else { return Limit::default() };
        let (mut slots, mut tokens) = (own.concurrency, own.tokens);
        if let Some(pool) = own.pool.and_then(|pool| self.pool(pool)) {
            tokens = tokens.min(pool.tokens);
            if pool.concurrency != u32::MAX {
                let beside = self.classes.iter().take(urgency).filter(|rule| rule.pool == own.pool);
                slots =
                    slots.min(beside.fold(pool.concurrency, |left, rule| left.saturating_sub(rule.reserved)));
            }
        }
        Limit {
            slots: Some(slots).filter(|slots| *slots != u32::MAX),
            tokens: Some(tokens).filter(|tokens| *tokens != u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(generation: u64, names: &[&str]) -> Rules {
        let rule = |name: &&str| ClassRule { class: Key::of(name), generation, ..ClassRule::default() };
        Rules { classes: names.iter().map(rule).collect(), ..Rules::default() }
    }

    #[test]
    fn what_only_an_older_configuration_knows_stays_in_its_order() {
        let (old, new) = (rules(1, &["a", "b", "c", "d"]), rules(2, &["b", "a"]));
        let mut record = old.clone();
        record.adopt(&new, |class| class == Key::of("d"));
        assert_eq!(record.classes, [new.classes.clone(), rules(1, &["d"]).classes].concat());
        assert!(record.hold(&new) && !record.hold(&old));
        record.adopt(&old, |_| true);
        assert_eq!(record.classes, [new.classes, rules(1, &["c", "d"]).classes].concat());
        assert!(record.hold(&old));
    }
    #[test]
    fn a_configuration_is_in_force_where_the_newest_rules_are_its_own() {
        let (one, other) = (rules(1, &["a", "b"]), rules(3, &["b", "a"]));
        let mut record = rules(2, &["a", "b"]);
        assert!(record.agree(&one) && record.agree(&rules(9, &["a", "b"])));
        assert!(!record.agree(&rules(1, &["a"])) && !record.agree(&rules(1, &["a", "b", "c"])));
        record.adopt(&other, |_| true);
        assert!(record.agree(&other) && !record.agree(&one));
        let mut again = one;
        again.date(4);
        record.adopt(&again, |_| true);
        assert!(record.agree(&again) && !record.agree(&other));
    }
}
