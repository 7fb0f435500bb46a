//! The world of the stories, natively: workers' VMs, the main thread's VM, and a clock that is set.

mod story;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::client;
use super::crew::Crew;
use super::ending;
use super::process::{Process, Settings};
use super::response;
use super::root;
use super::stream::Stream;
use super::vm::{self, Reply};
use crate::stories::{Arrival, Request, Sent, World};

/// How long a story waits for something to happen, in simulated time.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(10);

/// A client, an Envoy and a model server within this process.
pub struct NativeWorld {
    pub process: Arc<Process>,
    crew: Crew,
    /// Where each request sent is on its way; `None` where its worker's VM is gone.
    places: Vec<Option<Place>>,
    /// The worker whose connections the next request comes on, where that is not said.
    turn: usize,
}

/// A context of a worker's VM.
#[derive(Clone, Copy)]
struct Place {
    worker: usize,
    id: u32,
}

impl NativeWorld {
    /// An Envoy with one worker, started with `policy`; the filter must accept it.
    pub fn new(policy: &str) -> NativeWorld {
        NativeWorld::with(Settings::default(), policy)
    }

    /// The same with Envoy itself configured otherwise.
    pub fn with(settings: Settings, policy: &str) -> NativeWorld {
        NativeWorld::start(settings, 1, policy)
    }

    /// An Envoy with so many workers, which take requests in turns.
    pub fn with_workers(workers: usize, policy: &str) -> NativeWorld {
        NativeWorld::start(Settings::default(), workers, policy)
    }

    fn start(settings: Settings, workers: usize, policy: &str) -> NativeWorld {
        let process = Arc::new(Process::new(settings));
        let crew = Crew::start(&process, workers, policy);
        NativeWorld { process, crew, places: Vec::new(), turn: 0 }
    }

    /// Sends a request on a connection of one worker's.
    pub fn send_on(&mut self, worker: usize, request: &Request) -> Sent {
        // No two requests come at the same nanosecond.
        self.process.clock.advance_to(self.process.clock.after(Duration::from_micros(1)));
        let exchange = self.process.open_exchange();
        self.send_as(exchange, worker, request)
    }

    /// Sends a request on the connection of an `earlier` one.
    pub fn send_after(&mut self, earlier: Sent, worker: usize, request: &Request) -> Sent {
        let exchange = self.process.open_exchange();
        self.process.exchange(exchange, |it| it.connection = Some(earlier.0));
        self.send_as(exchange, worker, request)
    }

    fn send_as(&mut self, exchange: usize, worker: usize, request: &Request) -> Sent {
        let request = request.clone();
        let id = self.on_worker(worker, move || client::send(exchange, &request));
        self.places.push(Some(Place { worker, id }));
        Sent(exchange)
    }

    /// On each worker so many clients send `request` one after the other, the workers all at the same moment.
    pub fn send_at_once(&mut self, count: usize, request: &Request) -> Vec<Sent> {
        let crew = &self.crew;
        let exchanges: Vec<Vec<usize>> =
            (0..crew.len()).map(|_| (0..count).map(|_| self.process.open_exchange()).collect()).collect();
        let ids: Vec<Vec<u32>> = thread::scope(|scope| {
            let send = |(worker, exchanges): (usize, &Vec<usize>)| {
                let (exchanges, request) = (exchanges.clone(), request.clone());
                scope.spawn(move || {
                    crew.run(worker, move || {
                        exchanges.into_iter().map(|exchange| client::send(exchange, &request)).collect()
                    })
                })
            };
            let threads: Vec<_> = exchanges.iter().enumerate().map(send).collect();
            threads.into_iter().map(|thread| thread.join().expect("a worker's thread")).collect()
        });
        for (worker, ids) in ids.into_iter().enumerate() {
            self.places.extend(ids.into_iter().map(|id| Some(Place { worker, id })));
        }
        self.crew.settle();
        exchanges.into_iter().flatten().map(Sent).collect()
    }

    /// Whether another policy is accepted; if so, new requests come under it, and those on their way stay where they are.
    pub fn accepts(&mut self, policy: &str) -> bool {
        self.crew.configure(policy)
    }

    /// The drain time of replaced listeners is over: their streams are closed, their roots retired.
    pub fn drain(&mut self) {
        self.crew.run_on_all(|| {
            let (present, roots) = vm::with(|vm| (vm.root, vm.roots.keys().copied().collect::<Vec<_>>()));
            for root in roots.into_iter().filter(|root| *root != present) {
                let of_root = |vm: &mut vm::Vm| {
                    vm.streams.iter().filter(|(_, stream)| stream.root == root).map(|(id, _)| *id).collect()
                };
                let streams: Vec<u32> = vm::with(of_root);
                streams.into_iter().for_each(ending::disconnect);
                root::retire(root);
            }
        });
        self.crew.settle();
    }

    /// Several clients go away at once, before anything else happens.
    pub fn leave_all(&mut self, sent: &[Sent]) {
        for worker in 0..self.crew.len() {
            let places = sent.iter().filter_map(|sent| self.places[sent.0]);
            let ids: Vec<u32> = places.filter(|place| place.worker == worker).map(|place| place.id).collect();
            if !ids.is_empty() {
                self.crew.run(worker, move || ids.into_iter().for_each(ending::disconnect));
            }
        }
        self.crew.settle();
    }

    /// Requests to `cluster` that have arrived and not ended. (Those that are none of the filter's go to `llm_long` too
    /// and are left out, and so are those whose worker's VM is gone.)
    pub fn running(&self, cluster: &str) -> usize {
        let upstream = self.process.upstream();
        let counts = |index: usize, arrival: &Arrival| {
            let exchange = upstream.exchange(index);
            arrival.cluster == cluster
                && arrival.header("x-sluice-class").is_some()
                && self.places[exchange].is_some()
                && self.process.exchange(exchange, |exchange| exchange.log.is_none())
        };
        upstream.arrivals().enumerate().filter(|(index, arrival)| counts(*index, arrival)).count()
    }

    /// The arrivals that have not ended, by their places.
    pub fn open(&self) -> Vec<usize> {
        let exchanges: Vec<usize> = {
            let upstream = self.process.upstream();
            (0..upstream.arrivals().len()).map(|arrival| upstream.exchange(arrival)).collect()
        };
        let open = |exchange: usize| self.process.exchange(exchange, |exchange| exchange.log.is_none());
        exchanges.into_iter().enumerate().filter(|(_, exchange)| open(*exchange)).map(|(at, _)| at).collect()
    }

    /// Requests of a class that are held though they are whole and judged: those that wait.
    pub fn waiting(&self, class: &'static str) -> usize {
        let waits = |stream: &Stream| {
            stream.request.headers.get("x-sluice-class") == Some(class.as_bytes())
                && stream.request.forwarded.is_none()
                && !stream.response.started
                && !stream.ending
        };
        let count = move || vm::with(|vm| vm.streams.values().filter(|stream| waits(stream)).count());
        (0..self.crew.len())
            .filter(|worker| self.crew.lives(*worker))
            .map(|worker| self.crew.run(worker, count))
            .sum()
    }

    /// Counters and gauges whose names begin with `prefix`.
    pub fn metrics_named(&self, prefix: &str) -> Vec<(String, u64)> {
        let metrics = self.process.metrics();
        let named = metrics.values().filter(|(name, _)| name.starts_with(prefix));
        named.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Asserts that a gauge shows `value` now.
    pub fn metric_is(&self, name: &str, value: u64) {
        assert_eq!(self.process.metrics().value(name), Some(value), "{name}");
    }

    /// A worker's VM fails: it vanishes without a callback, and with it what was on its way there.
    pub fn lose(&mut self, worker: usize) {
        self.crew.lose(worker);
        let there = |place: &Option<Place>| place.is_some_and(|place| place.worker == worker);
        self.places.iter_mut().filter(|place| there(place)).for_each(|place| *place = None);
    }

    /// A worker has a fresh VM under `policy`, as after a failure; what was on its way there is lost.
    pub fn reload(&mut self, worker: usize, policy: &str) {
        self.lose(worker);
        self.crew.renew(worker, policy);
    }

    /// A worker's thread hangs, or does so no longer: what has come in the meantime then comes late.
    pub fn hang(&mut self, worker: usize, hangs: bool) {
        self.crew.hang(worker, hangs);
        self.crew.settle();
    }

    /// How many root contexts the first worker's VM has.
    pub fn roots(&self) -> usize {
        self.crew.run(0, || vm::with(|vm| vm.roots.len()))
    }

    /// Envoy itself answers a request, as at a timeout or after another filter's denial.
    pub fn envoy_answers(&mut self, sent: Sent, status: u16, details: &str) {
        let details = details.to_owned();
        self.on_stream(sent.0, move |id| {
            response::reply(id, Reply { status, details, body: b"no".to_vec(), ..Reply::default() });
        });
    }

    /// Envoy follows a redirect of the model server by itself: the same request begins anew.
    pub fn redirect(&mut self, sent: Sent) {
        if let Some(id) = self.on_stream(sent.0, ending::redirect).flatten()
            && let Some(place) = &mut self.places[sent.0]
        {
            place.id = id;
        }
    }

    /// A request that never gets to the filter, of which it hears only the end.
    pub fn send_stillborn(&mut self, request: &Request) -> Sent {
        let (exchange, headers) = (self.process.open_exchange(), client::head(request));
        self.places.push(None);
        self.on_worker(0, move || ending::stillborn(exchange, headers));
        Sent(exchange)
    }

    /// Ends everything on its way and checks that nothing is left behind.
    pub fn close(mut self) {
        for worker in 0..self.crew.len() {
            self.hang(worker, false);
        }
        let sent: Vec<Sent> = (0..self.places.len()).map(Sent).collect();
        self.leave_all(&sent);
        self.pass(Duration::from_secs(1));
        let levels = [self.metrics_named("sluice.inflight."), self.metrics_named("sluice.queued.")].concat();
        let left: Vec<_> = levels.into_iter().filter(|(_, value)| *value != 0).collect();
        assert!(left.is_empty(), "slots or places left behind: {left:?}");
        assert!(self.healthy(), "{}", self.describe());
    }

    fn on_worker<T: Send + 'static>(&mut self, worker: usize, job: impl FnOnce() -> T + Send + 'static) -> T {
        let result = self.crew.run(worker, job);
        self.crew.settle();
        result
    }

    /// Does something to a request where it is on its way; nothing where its worker's VM is gone.
    fn on_stream<T: Send + 'static>(
        &mut self,
        exchange: usize,
        job: impl FnOnce(u32) -> T + Send + 'static,
    ) -> Option<T> {
        let Place { worker, id } = self.places[exchange]?;
        Some(self.on_worker(worker, move || job(id)))
    }

    /// Lets time pass until `come` gives something.
    fn wait<T>(&mut self, what: &str, come: impl Fn(&Process) -> Option<T>) -> T {
        let end = self.process.clock.after(PATIENCE);
        loop {
            if let Some(found) = come(&self.process) {
                return found;
            }
            assert!(self.process.clock.elapsed() < end, "waited in vain for {what}; {}", self.describe());
            self.pass(STEP);
        }
    }

    fn describe(&self) -> String {
        let values: Vec<_> = self.metrics_named("").into_iter().filter(|(_, value)| *value != 0).collect();
        let stuck = self.process.upstream().stuck();
        let (faults, logs) = (self.process.faults(), self.process.logs());
        format!("stuck upstream: {stuck}; faults: {faults:?}; metrics: {values:?}; log: {logs:?}")
    }
}
