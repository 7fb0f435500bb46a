//! Who may go on, who waits and who is refused. Time, streams and the ledger's record come as arguments, decisions go
//! out as data.

mod claims;
mod drain;
pub mod ledger;
mod line;
mod own;
mod settle;
mod watch;

pub use claims::{Ending, Leaving, Request};
pub use settle::{Settlement, Writer};

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::core::policy::Policy;
use crate::core::units::{ClassId, Ticket, Time};
use claims::{Claims, Place};
use drain::{Busy, DrainRate};
use ledger::{BEAT, Head, Key, Record, Rules};
pub use ledger::{Connection, Demand, Limit};
use line::Line;
use watch::Watch;

/// How long a slot stays taken after a client has left a running request: the model server has not seen it yet.
const LINGER: Duration = Duration::from_millis(20);

/// One worker's part in the classes of its policy.
#[derive(Debug)]
pub struct Admission {
    /// The key of the domain's record.
    key: Rc<str>,
    /// The limits under this policy.
    rules: Rules,
    /// The latest connection known that came under this policy.
    connection: Option<Connection>,
    /// When this worker's row was last written.
    beat: Time,
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
    key: Key,
    timeout: Duration,
    line: Line,
    inflight: u32,
    tokens: u64,
    rate: DrainRate,
    /// Whether others had requests in flight when the ledger was last settled.
    elsewhere: bool,
    /// What the class was up against, over all workers, when the ledger was last settled.
    demand: Demand,
}

impl Class {
    /// Who has requests of it in flight, this worker `inflight` ones.
    fn busy(&self, inflight: u32) -> Busy {
        match (inflight, self.elsewhere) {
            (1.., _) => Busy::Here,
            (0, true) => Busy::Elsewhere,
            (0, false) => Busy::No,
        }
    }
}

impl Admission {
    /// Nothing in flight, nobody waiting; `now` is the policy's generation.
    pub fn new(policy: &Policy, now: Time) -> Admission {
        let class = |class: &crate::core::policy::Class| Class {
            key: Key::of(&class.name),
            timeout: class.queue.timeout,
            line: Line::default(),
            inflight: 0,
            tokens: 0,
            rate: DrainRate::default(),
            elsewhere: false,
            demand: Demand::default(),
        };
        Admission {
            key: own::record_key(policy),
            rules: own::rules(policy, now),
            connection: None,
            beat: Time::default(),
            classes: policy.classes.iter().map(class).collect(),
            claims: Claims::default(),
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            lingering: VecDeque::new(),
            watch: Watch::new(now),
            spare: Settlement::default(),
        }
    }

    /// A request has come by `connection`, where that is known. One to be told of now and then is enough.
    pub fn meet(&mut self, connection: Option<Connection>) {
        let known = self.connection.map_or(0, |known| known.id);
        self.connection = connection.filter(|connection| connection.id > known).or(self.connection);
    }

    /// A request has come although other limits than this policy's are in force, under which the `latest` connection
    /// known came: if its own is a later one, this policy is the newest again. False where it is not.
    pub fn come_back(&mut self, now: Time, connection: Option<Connection>, latest: Connection) -> bool {
        let back = connection.is_some_and(|connection| connection.is_after(latest));
        if back {
            self.rules.date(now.0);
            self.meet(connection);
        }
        back
    }

    /// The worker has been called; to be told at every tick.
    pub fn note(&mut self, now: Time) {
        self.watch.note(now);
    }

    /// A request arrives and stands in line: settle to see whether it may go on. `None` where there is no such class.
    pub fn enter(&mut self, now: Time, request: Request) -> Option<Ticket> {
        let class = self.classes.get_mut(request.class.index())?;
        let wait = request.patience.map_or(class.timeout, |patience| patience.min(class.timeout));
        let deadline = now.after(wait);
        let ticket = self.claims.enter(&request, deadline, |ticket| {
            let head = Head { ticket, since: now, tokens: request.tokens, ..Head::default() };
            class.line.push(head, request.key)
        });
        self.deadlines.insert((deadline, ticket));
        Some(ticket)
    }

    /// A request ends, wherever it stood; whether there is something to settle now. `broken` tells that the model
    /// server may not know yet that nobody wants the answer: then the slot is given back a little later. Without effect
    /// on a ticket that has left.
    pub fn leave(&mut self, now: Time, ticket: Ticket, ending: Ending, broken: bool) -> bool {
        let Some(claim) = self.claims.get_mut(ticket) else { return false };
        let Some(class) = self.classes.get_mut(claim.class.index()) else { return false };
        match (&claim.place, ending) {
            (Place::Lingering, _) => return false,
            (Place::Waiting { .. }, _) | (Place::Running, Ending::Gone) => {}
            (Place::Running, Ending::Served) => class.rate.answered(now),
            (Place::Running, Ending::Failed) => class.rate.failed(),
        }
        if broken && matches!(claim.place, Place::Running) {
            claim.place = Place::Lingering;
            self.lingering.push_back((now.after(LINGER), ticket));
            return false;
        }
        self.forget(now, ticket);
        true
    }

    /// Takes at most `most` requests out of the lines whose patience has ended; if there are any, settle.
    pub fn expire(&mut self, now: Time, most: usize) -> Vec<Leaving> {
        let mut leaving = Vec::new();
        while leaving.len() < most
            && let Some((_, ticket)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now)
        {
            leaving.extend(self.claims.leaving(ticket));
            self.forget(now, ticket);
        }
        leaving
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

    /// Gives back the slots of clients that left long enough ago; whether there are any, and so something to settle.
    pub fn end_lingering(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some((_, ticket)) = self.lingering.front().copied().filter(|(until, _)| *until <= now) {
            self.lingering.pop_front();
            self.forget(now, ticket);
            any = true;
        }
        any
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

    /// How many stood before the request of `class` that was refused last, over all workers.
    pub fn ahead(&self, class: ClassId) -> u32 {
        self.classes.get(class.index()).map_or(0, |class| class.demand.waiting.saturating_sub(1))
    }

    /// When a refused request of `class` should come back, if it has one; `chance` is any number that differs between
    /// requests.
    pub fn retry_after(&self, now: Time, class: Option<ClassId>, chance: u64) -> Duration {
        let class = class.and_then(|class| self.classes.get(class.index()));
        drain::retry_after(&class.map(|class| class.demand).unwrap_or_default(), now, chance)
    }

    /// What each class is up against by the record as `found`, and its limits over all workers.
    pub fn observe(&self, now: Time, found: Option<&[u8]>) -> Vec<(ClassId, Demand, Limit)> {
        let mut record = found.and_then(Record::decode).unwrap_or_default();
        self.bring_in(&mut record);
        let observed = |(place, class): (usize, &Class)| {
            let id = ClassId(u8::try_from(place).ok()?);
            Some((id, record.demand(now, class.key), record.rules.limit(class.key)))
        };
        self.classes.iter().enumerate().filter_map(observed).collect()
    }

    /// The record with this policy's limits, where the one `found` does not know them.
    pub fn announce(&self, found: Option<&[u8]>) -> Option<Vec<u8>> {
        let mut record = Record::decode(found?)?;
        self.bring_in(&mut record).then(|| record.encode())
    }

    /// Makes the record know this policy's limits; false where it did.
    fn bring_in(&self, record: &mut Record) -> bool {
        if record.rules.hold(&self.rules) {
            return false;
        }
        let mut rules = std::mem::take(&mut record.rules);
        rules.adopt(&self.rules, |class| record.mentions(class));
        record.rules = rules;
        true
    }

    /// Whether others have to hear of this worker, so that they do not take it for dead.
    fn needs_beat(&self, now: Time) -> bool {
        now.since(self.beat) >= BEAT
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
                class.rate.note(now, class.busy(class.inflight));
            }
        }
    }
}
