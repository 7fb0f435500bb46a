//! Admission without Envoy: how many requests a second are let in and ended through the ledger, against the number
//! that wait and the number of workers; and what one that waits costs in memory.
//!
//! `cargo bench --bench admission`. Each figure is the median of rounds that alternate between the cases, so that all
//! of them see the same machine; the counts are checked while the time is taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sluice::core::admission::ledger::Record;
use sluice::core::admission::{Admission, Ending, Request, Writer};
use sluice::core::config;
use sluice::core::policy::Policy;
use sluice::core::units::{ClassId, StreamId, Ticket, Time};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const SLOTS: usize = 8;
const ROUNDS: usize = 15;
const STEPS: u64 = 20_000;

/// One worker that is measured, `rows - 1` others that have something in flight, and the record that they share.
struct Bench {
    admission: Admission,
    store: Vec<u8>,
    now: Time,
    running: std::collections::VecDeque<Ticket>,
}

const WRITER: Writer = Writer { uid: 1, queue: 1 };

fn policy(slots: usize) -> Policy {
    let mut policy = config::parse(b"{}").expect("the default policy");
    policy.classes.truncate(1);
    policy.classes[0].concurrency = Some(slots);
    policy.classes[0].queue.capacity = 1_000_000;
    policy.classes[0].queue.timeout = Duration::from_secs(3600);
    policy
}

impl Bench {
    fn new(waiting: usize, rows: u64) -> Bench {
        let policy = policy(SLOTS + rows as usize - 1);
        let now = Time(1_000_000_000);
        let mut bench = Bench {
            admission: Admission::new(&policy, now),
            store: Vec::new(),
            now,
            running: Default::default(),
        };
        for other in 2..=rows {
            let mut admission = Admission::new(&policy, now);
            let writer = Writer { uid: other, queue: other as u32 };
            let ticket = admission.enter(now, request()).expect("a class");
            let mut settlement = admission.propose(now, writer, found(&bench.store), Some(ticket));
            bench.store.clear();
            bench.store.extend_from_slice(settlement.record());
            assert!(admission.commit(now, settlement, true));
        }
        while bench.running.len() < SLOTS {
            assert!(bench.enter());
        }
        (0..waiting).for_each(|_| assert!(!bench.enter()));
        bench
    }

    fn enter(&mut self) -> bool {
        let ticket = self.admission.enter(self.now, request()).expect("a class");
        let mut settlement = self.admission.propose(self.now, WRITER, found(&self.store), Some(ticket));
        assert!(settlement.is_due(true));
        self.store.clear();
        self.store.extend_from_slice(settlement.record());
        let admitted = self.admission.commit(self.now, settlement, true);
        if admitted {
            self.running.push_back(ticket);
        }
        admitted
    }

    /// A request ends, and who is next goes on.
    fn leave(&mut self) {
        let ticket = self.running.pop_front().expect("something runs");
        assert!(self.admission.leave(self.now, ticket, Ending::Served, false), "it was there");
        let mut settlement = self.admission.propose(self.now, WRITER, found(&self.store), None);
        self.store.clear();
        self.store.extend_from_slice(settlement.record());
        self.admission.commit(self.now, settlement, true);
        self.running.extend(self.admission.take_ready(32).into_iter().map(|leaving| leaving.ticket));
    }

    /// Nanoseconds for one request: in and out again.
    fn round(&mut self) -> f64 {
        let began = Instant::now();
        for _ in 0..STEPS {
            self.now = Time(self.now.0 + 1000);
            self.leave();
            black_box(self.enter());
        }
        let took = began.elapsed().as_nanos() as f64 / STEPS as f64;
        assert_eq!(self.running.len(), SLOTS);
        took
    }
}

fn found(store: &[u8]) -> Option<&[u8]> {
    (!store.is_empty()).then_some(store)
}

fn request() -> Request {
    Request { stream: StreamId(1), class: ClassId(0), tokens: 300, key: None, patience: None }
}

fn main() {
    let cases: Vec<(usize, u64)> =
        [0, 10, 10_000].iter().flat_map(|waiting| [1, 2, 4, 16].map(|rows| (*waiting, rows))).collect();
    // `-- 10000 1` measures that case alone.
    let only: Vec<u64> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let wanted = |(waiting, rows): &(usize, u64)| only.is_empty() || only == [*waiting as u64, *rows];
    let cases: Vec<_> = cases.into_iter().filter(wanted).collect();
    let mut benches: Vec<Bench> = cases.iter().map(|(waiting, rows)| Bench::new(*waiting, *rows)).collect();
    let mut times = vec![Vec::new(); benches.len()];
    for _ in 0..ROUNDS {
        benches.iter_mut().zip(&mut times).for_each(|(bench, times)| times.push(bench.round()));
    }
    println!("waiting   rows   record bytes   ns a request   requests a second");
    for ((waiting, rows), (bench, times)) in cases.iter().zip(benches.iter().zip(&mut times)) {
        let record = Record::decode(&bench.store).expect("a record");
        let waits: u32 = record.rows.iter().flat_map(|row| &row.shares).map(|share| share.waiting).sum();
        assert_eq!(waits as usize, *waiting);
        times.sort_by(f64::total_cmp);
        let median = times[ROUNDS / 2];
        println!("{waiting:7} {rows:6} {:14} {median:14.0} {:19.0}", bench.store.len(), 1e9 / median);
    }
    drop(benches);
    let mut bench = Bench::new(0, 1);
    let before = LIVE.load(Ordering::Relaxed);
    (0..10_000).for_each(|_| assert!(!bench.enter()));
    println!("bytes a parked request: {}", (LIVE.load(Ordering::Relaxed) - before) / 10_000);
}
