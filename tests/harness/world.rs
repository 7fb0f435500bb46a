//! The world of the stories, natively: one worker's VM, the main thread's VM, and a clock that is set.

use std::sync::Arc;
use std::time::Duration;

use super::client;
use super::ending;
use super::headers::Headers;
use super::process::{Process, Settings};
use super::response;
use super::root;
use super::vm::{self, Reply};
use super::worker::Worker;
use crate::stories::{Answer, Arrival, Request, Response, Sent, World};

/// How long a story waits for something to happen, in simulated time.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(10);

/// A client, an Envoy and a model server within this process.
pub struct NativeWorld {
    pub process: Arc<Process>,
    worker: Worker,
    main: Worker,
    /// The context of each request sent.
    contexts: Vec<u32>,
}

impl NativeWorld {
    /// An Envoy started with `policy`; the filter must accept it.
    pub fn new(policy: &str) -> NativeWorld {
        NativeWorld::with(Settings::default(), policy)
    }

    /// The same with Envoy itself configured otherwise.
    pub fn with(settings: Settings, policy: &str) -> NativeWorld {
        let process = Arc::new(Process::new(settings));
        let start = |seed| match Worker::configured(&process, seed, policy) {
            Some(worker) => worker,
            None => panic!("the filter refused the policy: {:?}", process.logs()),
        };
        // The canary lives before the others and vanishes without a word.
        drop(start(1));
        let (main, worker) = (start(2), start(3));
        NativeWorld { process, worker, main, contexts: Vec::new() }
    }

    /// Whether another policy is accepted; if so, new requests come under it, and those on their way stay where they are.
    pub fn accepts(&mut self, policy: &str) -> bool {
        let canary = Worker::configured(&self.process, 4, policy);
        if canary.is_none() {
            return false;
        }
        for worker in [&self.main, &self.worker] {
            let policy = policy.to_owned();
            assert!(
                worker.run(move || root::configure(&policy)).is_some(),
                "refused by a worker, not by the canary"
            );
        }
        true
    }

    /// The drain time of replaced listeners is over: their streams are closed, their roots retired.
    pub fn drain(&mut self) {
        for worker in [&self.main, &self.worker] {
            worker.run(|| {
                let (present, roots) = vm::with(|vm| (vm.root, vm.roots.keys().copied().collect::<Vec<_>>()));
                for root in roots.into_iter().filter(|root| *root != present) {
                    let of_root = |vm: &mut vm::Vm| {
                        vm.streams
                            .iter()
                            .filter(|(_, stream)| stream.root == root)
                            .map(|(id, _)| *id)
                            .collect()
                    };
                    let streams: Vec<u32> = vm::with(of_root);
                    streams.into_iter().for_each(ending::disconnect);
                    root::retire(root);
                }
            });
        }
        self.settle();
    }

    /// Several clients go away at once, before anything else happens.
    pub fn leave_all(&mut self, sent: &[Sent]) {
        let ids: Vec<u32> = sent.iter().map(|sent| self.contexts[sent.0]).collect();
        self.on_worker(move || ids.into_iter().for_each(ending::disconnect));
    }

    /// Requests to `cluster` that have arrived and not ended. (Those that are none of the filter's go to `llm_long` too
    /// and are left out.)
    pub fn running(&self, cluster: &str) -> usize {
        let upstream = self.process.upstream();
        let of_cluster =
            |arrival: &Arrival| arrival.cluster == cluster && arrival.header("x-sluice-class").is_some();
        let open =
            |index: usize| self.process.exchange(upstream.exchange(index), |exchange| exchange.log.is_none());
        upstream.arrivals().enumerate().filter(|(index, arrival)| of_cluster(arrival) && open(*index)).count()
    }

    /// Counters and gauges whose names begin with `prefix`.
    pub fn metrics_named(&self, prefix: &str) -> Vec<(String, u64)> {
        let metrics = self.process.metrics();
        let named = metrics.values().filter(|(name, _)| name.starts_with(prefix));
        named.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The worker's VM is replaced by a fresh one under `policy`, as after a failure, with nothing on its way.
    pub fn reload(&mut self, policy: &str) {
        self.worker =
            Worker::configured(&self.process, 5, policy).expect("a policy that was accepted before");
        self.contexts.fill(0);
    }

    /// How many root contexts the worker's VM has.
    pub fn roots(&self) -> usize {
        self.worker.run(|| vm::with(|vm| vm.roots.len()))
    }

    /// Envoy itself answers a request, as at a timeout or after another filter's denial.
    pub fn envoy_answers(&mut self, sent: Sent, status: u16, details: &str) {
        let (id, details) = (self.contexts[sent.0], details.to_owned());
        self.on_worker(move || {
            response::reply(id, Reply { status, details, body: b"no".to_vec(), ..Reply::default() });
        });
    }

    /// Envoy follows a redirect of the model server by itself: the same request begins anew.
    pub fn redirect(&mut self, sent: Sent) {
        let id = self.contexts[sent.0];
        if let Some(id) = self.on_worker(move || ending::redirect(id)) {
            self.contexts[sent.0] = id;
        }
    }

    /// A request that never gets to the filter, of which it hears only the end.
    pub fn send_stillborn(&mut self, request: &Request) -> Sent {
        let (exchange, headers) = (self.process.open_exchange(), client::head(request));
        self.contexts.push(0);
        self.on_worker(move || ending::stillborn(exchange, headers));
        Sent(exchange)
    }

    /// Queue messages are delivered until there are none.
    fn settle(&mut self) {
        self.worker.run(vm::settle);
        self.main.run(vm::settle);
    }

    /// Ends everything on its way and checks that nothing is left behind.
    pub fn close(mut self) {
        let open: Vec<u32> = self.contexts.clone();
        self.on_worker(move || open.into_iter().for_each(ending::disconnect));
        self.pass(Duration::from_secs(1));
        let levels = [self.metrics_named("sluice.inflight."), self.metrics_named("sluice.queued.")].concat();
        let left: Vec<_> = levels.into_iter().filter(|(_, value)| *value != 0).collect();
        assert!(left.is_empty(), "slots or places left behind: {left:?}");
        assert!(self.healthy(), "{}", self.describe());
    }

    fn on_worker<T: Send + 'static>(&mut self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let result = self.worker.run(job);
        self.settle();
        result
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

impl World for NativeWorld {
    fn send(&mut self, request: &Request) -> Sent {
        let exchange = self.process.open_exchange();
        let request = request.clone();
        let id = self.on_worker(move || client::send(exchange, &request));
        self.contexts.push(id);
        Sent(exchange)
    }

    fn response(&mut self, sent: Sent) -> Response {
        self.wait("a response", |process| {
            process.exchange(sent.0, |exchange| {
                exchange.log.is_some().then(|| Response {
                    status: exchange.status,
                    headers: exchange.headers.clone(),
                    body: exchange.body.clone(),
                    complete: exchange.complete,
                })
            })
        })
    }

    fn answered(&mut self, sent: Sent) -> bool {
        self.process.exchange(sent.0, |exchange| exchange.status != 0)
    }

    fn leave(&mut self, sent: Sent) {
        let id = self.contexts[sent.0];
        self.on_worker(move || ending::disconnect(id));
    }

    fn arrivals(&mut self, count: usize) -> Vec<Arrival> {
        self.wait("arrivals", |process| {
            let upstream = process.upstream();
            (upstream.arrivals().len() >= count).then(|| upstream.arrivals().take(count).cloned().collect())
        })
    }

    fn arrived(&mut self) -> usize {
        self.settle();
        self.process.upstream().arrivals().len()
    }

    fn answer(&mut self, arrival: usize, answer: Answer) {
        let id = self.contexts[self.process.upstream().exchange(arrival)];
        self.on_worker(move || match answer {
            Answer::Whole { status, headers, body } => {
                let mut map = Headers::default();
                headers.iter().for_each(|(name, value)| map.add(name, value.as_bytes()));
                map.set("content-length", body.len().to_string());
                response::begin(id, status, map, VIA_UPSTREAM, body.is_empty());
                if !body.is_empty() {
                    response::data(id, body, false);
                    response::data(id, Vec::new(), true);
                }
            }
            Answer::Begin(pieces) => {
                let mut map = Headers::default();
                map.add("content-type", "text/event-stream");
                response::begin(id, 200, map, VIA_UPSTREAM, false);
                pieces.into_iter().for_each(|piece| response::data(id, piece, false));
            }
            Answer::More(pieces) => pieces.into_iter().for_each(|piece| response::data(id, piece, false)),
            Answer::End => response::data(id, Vec::new(), true),
            Answer::Reset => ending::upstream_reset(id),
        });
    }

    fn pass(&mut self, time: Duration) {
        let end = self.process.clock.after(time);
        self.settle();
        loop {
            let workers = [&self.worker, &self.main];
            let due = workers.iter().filter_map(|worker| worker.run(root::next_tick)).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.process.clock.advance_to(due);
            workers.iter().for_each(|worker| worker.run(root::tick));
            self.settle();
        }
        self.process.clock.advance_to(end);
    }

    fn metric_becomes(&mut self, name: &str, value: u64) {
        self.wait(&format!("{name} to become {value}"), |process| {
            (process.metrics().value(name).unwrap_or(0) == value).then_some(())
        });
    }

    fn logged(&mut self, sent: Sent, field: &str) -> String {
        let log = self
            .wait("an access log line", |process| process.exchange(sent.0, |exchange| exchange.log.clone()));
        let value = match field {
            "details" => log.details,
            field => {
                let value = log.state.get(&format!("sluice.{field}")).cloned().unwrap_or_default();
                String::from_utf8(value).expect("filter state in UTF-8")
            }
        };
        if value.is_empty() { "-".to_owned() } else { value }
    }

    fn reconfigure(&mut self, policy: &str) {
        assert!(self.accepts(policy), "the filter refused the policy: {:?}", self.process.logs());
    }

    fn healthy(&mut self) -> bool {
        self.process.faults().is_empty()
    }
}

/// `%RESPONSE_CODE_DETAILS%` of an upstream's answer.
const VIA_UPSTREAM: &str = "via_upstream";
