//! Who may go on, who waits and who is refused. Time, streams and the ledger's record come as arguments, decisions go
//! out as data.

mod claims;
mod drain;
pub mod ledger;
mod line;
mod pool;
mod settle;
mod watch;

pub use claims::{Leaving, Request};
pub use pool::PoolId;
pub use settle::{Settlement, Writer};

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::core::policy::Policy;
use crate::core::units::{ClassId, Ticket, Time};
use claims::{Claims, Place};
use drain::DrainRate;
pub use ledger::Demand;
use ledger::{ClassKey, Head, Record};
use line::Line;
use pool::Pool;
use watch::Watch;

/// How long a slot stays taken after a client has left a running request: the model server has not seen it yet.
const LINGER: Duration = Duration::from_millis(20);

/// One worker's part in the pools of its policy.
#[derive(Debug)]
pub struct Admission {
    pools: Vec<Pool>,
    classes: Vec<Class>,
    claims: Claims,
    /// Who waits until when.
    deadlines: BTreeSet<(Time, Ticket)>,
    /// Who has a slot and is not yet told.
    ready: VecDeque<Ticket>,
    /// Whose client has left: the slot is given back at that time.
    lingering: VecDeque<(Time, Ticket)>,
    watch: Watch,
    /// Room for the next settlement.
    spare: Settlement,
}

/// One worker's part in a class.
#[derive(Debug)]
struct Class {
    key: ClassKey,
    pool: PoolId,
    timeout: Duration,
    line: Line,
    inflight: u32,
    tokens: u64,
    rate: DrainRate,
    /// What the class was up against, over all workers, when the ledger was last settled.
    demand: Demand,
}

impl Admission {
    /// Nothing in flight, nobody waiting; `now` is the policy's generation.
    pub fn new(policy: &Policy, now: Time) -> Admission {
        let (pools, of_class) = pool::pools(policy, now);
        let class = |(class, pool): (&crate::core::policy::Class, PoolId)| Class {
            key: ClassKey::of(&class.name),
            pool,
            timeout: class.queue.timeout,
            line: Line::default(),
            inflight: 0,
            tokens: 0,
            rate: DrainRate::default(),
            demand: Demand::default(),
        };
        Admission {
            pools,
            classes: policy.classes.iter().zip(of_class).map(class).collect(),
            claims: Claims::default(),
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            lingering: VecDeque::new(),
            watch: Watch::new(now),
            spare: Settlement::default(),
        }
    }

    /// The worker has been called; to be told at every tick.
    pub fn note(&mut self, now: Time) {
        self.watch.note(now);
    }

    /// A request arrives and stands in line: settle its pool to see whether it may go on. `None` where there is no
    /// such class.
    pub fn enter(&mut self, now: Time, request: Request) -> Option<(Ticket, PoolId)> {
        let class = self.classes.get_mut(request.class.index())?;
        let wait = request.patience.map_or(class.timeout, |patience| patience.min(class.timeout));
        let deadline = now.after(wait);
        let pool = class.pool;
        let ticket = self.claims.enter(&request, deadline, |ticket| {
            let head = Head { ticket, since: now, tokens: request.tokens, ..Head::default() };
            class.line.push(head, request.key)
        });
        self.deadlines.insert((deadline, ticket));
        Some((ticket, pool))
    }

    /// A request ends, wherever it stood; the pool that has to be settled. `served` tells that an answer below 500 ran
    /// its course, `broken` that the model server may not know yet that nobody wants the answer: then the slot is
    /// given back a little later. Without effect on a ticket that has left.
    pub fn leave(&mut self, now: Time, ticket: Ticket, served: bool, broken: bool) -> Option<PoolId> {
        let claim = self.claims.get_mut(ticket)?;
        let class = self.classes.get_mut(claim.class.index())?;
        match claim.place {
            Place::Lingering => return None,
            Place::Running if broken => {
                claim.place = Place::Lingering;
                self.lingering.push_back((now.after(LINGER), ticket));
                return None;
            }
            Place::Running if served => class.rate.answered(now),
            Place::Running | Place::Waiting { .. } => {}
        }
        let pool = class.pool;
        self.forget(now, ticket);
        Some(pool)
    }

    /// Takes at most `most` requests out of the lines whose patience has ended; their pools have to be settled.
    pub fn expire(&mut self, now: Time, most: usize) -> (Vec<Leaving>, BTreeSet<PoolId>) {
        let (mut leaving, mut pools) = (Vec::new(), BTreeSet::new());
        while leaving.len() < most
            && let Some((_, ticket)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now)
        {
            leaving.extend(self.claims.leaving(ticket));
            pools.extend(self.pool_of(ticket));
            self.forget(now, ticket);
        }
        (leaving, pools)
    }

    /// At most `most` requests that were given a slot and are to be told.
    pub fn take_ready(&mut self, most: usize) -> Vec<Leaving> {
        let mut leaving = Vec::new();
        while leaving.len() < most
            && let Some(ticket) = self.ready.pop_front()
        {
            // Who has left in the meantime is not there any more.
            leaving.extend(self.claims.leaving(ticket));
        }
        leaving
    }

    /// Gives back the slots of clients that left long enough ago; the pools that have to be settled.
    pub fn end_lingering(&mut self, now: Time) -> BTreeSet<PoolId> {
        let mut pools = BTreeSet::new();
        while let Some((_, ticket)) = self.lingering.front().copied().filter(|(until, _)| *until <= now) {
            self.lingering.pop_front();
            pools.extend(self.pool_of(ticket));
            self.forget(now, ticket);
        }
        pools
    }

    /// Whether [`Admission::take_ready`] would find something to do.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether [`Admission::expire`] would find something to do.
    pub fn has_overdue(&self, now: Time) -> bool {
        self.deadlines.first().is_some_and(|(until, _)| *until <= now)
    }

    /// Whether time has to be watched closely: somebody waits, or lingers.
    pub fn is_waiting(&self) -> bool {
        !self.deadlines.is_empty() || !self.lingering.is_empty()
    }

    /// When a refused request of `class` should come back, if it has one; `chance` is any number that differs between
    /// requests.
    pub fn retry_after(&self, now: Time, class: Option<ClassId>, chance: u64) -> Duration {
        let class = class.and_then(|class| self.classes.get(class.index()));
        drain::retry_after(&class.map(|class| class.demand).unwrap_or_default(), now, chance)
    }

    /// What each class of `pool` is up against by its record as `found`, and how many it may have in flight.
    pub fn observe(
        &self,
        now: Time,
        pool: PoolId,
        found: Option<&[u8]>,
    ) -> Vec<(ClassId, Demand, Option<u64>)> {
        let Some(pool) = self.pools.get(pool.0) else { return Vec::new() };
        let record = found.and_then(Record::decode).unwrap_or_default();
        let rules = if record.rules.is_older(&pool.rules) { &pool.rules } else { &record.rules };
        let observed = |class: &ClassId| {
            let key = self.classes.get(class.index())?.key;
            let limit = rules.of(key).map_or(u32::MAX, |rule| rule.concurrency).min(rules.concurrency);
            let limit = (limit != u32::MAX).then_some(u64::from(limit));
            Some((*class, record.demand(now, key), limit))
        };
        pool.classes.iter().filter_map(observed).collect()
    }

    /// The record of `pool` with this policy's limits, where the one `found` has older ones.
    pub fn announce(&self, pool: PoolId, found: Option<&[u8]>) -> Option<Vec<u8>> {
        let own = self.pools.get(pool.0)?;
        let mut record = Record::decode(found?).filter(|record| record.rules.is_older(&own.rules))?;
        record.rules.clone_from(&own.rules);
        Some(record.encode())
    }

    /// All pools.
    pub fn pools(&self) -> impl Iterator<Item = PoolId> + use<> {
        (0..self.pools.len()).map(PoolId)
    }

    fn pool_of(&self, ticket: Ticket) -> Option<PoolId> {
        let claim = self.claims.get(ticket)?;
        self.classes.get(claim.class.index()).map(|class| class.pool)
    }

    /// Takes a request out of everything.
    fn forget(&mut self, now: Time, ticket: Ticket) {
        let Some(claim) = self.claims.remove(ticket) else { return };
        let Some(class) = self.classes.get_mut(claim.class.index()) else { return };
        match claim.place {
            Place::Waiting { place, deadline } => {
                class.line.remove(place);
                self.deadlines.remove(&(deadline, ticket));
            }
            Place::Running | Place::Lingering => {
                class.inflight = class.inflight.saturating_sub(1);
                class.tokens = class.tokens.saturating_sub(claim.tokens);
                class.rate.note(now, class.inflight > 0);
            }
        }
    }
}
