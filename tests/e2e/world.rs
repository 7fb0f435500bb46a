//! The stories' world on the real Envoy.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rig::envoy::{Config, Envoy};
use serde_json::Value;

use super::exchange::Exchange;
use super::model::{self, Arrivals, Desk};
use super::watched::{PATIENCE, Watched, poll};
use crate::stories::{Answer, Arrival, Request, Response, Sent, World};

const CLUSTERS: [&str; 2] = ["llm_short", "llm_long"];
/// Longer than a timer of the filter, which may be what sends the next request on.
const QUIET: Duration = Duration::from_millis(30);

/// One Envoy, one model server behind each cluster, any number of clients.
pub struct RealWorld {
    pub envoy: Envoy,
    pub arrivals: Arrivals,
    clients: Vec<Client>,
}

/// A client stays known by its address when it has left.
struct Client {
    exchange: Option<Exchange>,
    local: String,
}

impl RealWorld {
    /// The shipped configuration with one worker and `policy`.
    pub fn start(policy: &str) -> Self {
        Self::start_with(policy, |_| ())
    }

    /// As [`RealWorld::start`], after `adapt` has changed what it needs to.
    pub fn start_with(policy: &str, adapt: impl FnOnce(&mut Config)) -> Self {
        let arrivals = Watched::new(Desk::default());
        let mut config = Config::shipped("envoy.yaml").expect("what the tests need");
        config.policy = Some(policy.to_owned());
        config.clusters = CLUSTERS
            .map(|name| (name.to_owned(), model::start(name, &arrivals).expect("a model server")))
            .to_vec();
        adapt(&mut config);
        let envoy = Envoy::start(&config).expect("Envoy");
        Self { envoy, arrivals, clients: Vec::new() }
    }

    /// Starts a request without waiting for anything.
    pub fn launch(&mut self, request: &Request) -> Sent {
        self.enlist(Exchange::start(self.envoy.addr(), request).expect("a connection to Envoy"))
    }

    /// The same on a connection that Envoy has given to this `worker` of its several.
    pub fn launch_on(&mut self, worker: usize, request: &Request) -> Sent {
        const TRIES: usize = 200;
        for _ in 0..TRIES {
            let before = self.connections(worker);
            let all = self.all_connections();
            let stream = TcpStream::connect(self.envoy.addr()).expect("a connection to Envoy");
            poll(
                || "a worker to take a connection".to_owned(),
                || (self.all_connections() > all).then_some(()),
            );
            if self.connections(worker) > before {
                return self.enlist(Exchange::over(stream, request).expect("a connection to Envoy"));
            }
        }
        panic!("worker {worker} takes no connection");
    }

    /// How many requests the model server has open, and the most that it ever had.
    pub fn open(&self) -> (usize, usize) {
        self.arrivals.look(|desk| (desk.open(), desk.peak))
    }

    fn enlist(&mut self, exchange: Exchange) -> Sent {
        let local = exchange.local.to_string();
        self.clients.push(Client { exchange: Some(exchange), local });
        Sent(self.clients.len() - 1)
    }

    /// From now on the model server gives this answer to each request, untold.
    pub fn answer_at_once(&self, answer: Answer) {
        self.arrivals.change(|desk| desk.at_once = Some(answer));
    }

    /// A counter or gauge of the filter, as it is now.
    pub fn metric(&self, name: &str) -> u64 {
        self.envoy.stats().expect("stats").get(&format!("wasmcustom.{name}"))
    }

    /// What has gone wrong with a VM, as Envoy tells it; empty where all is well.
    pub fn failures(&self) -> Vec<String> {
        let log = self.envoy.log().expect("Envoy's log");
        let bad = ["Function: proxy_on", "panicked", "VM is failed", "envoy bug failure"];
        let lines = log.lines().filter(|line| bad.iter().any(|word| line.contains(word))).map(str::to_owned);
        let stats = self.envoy.stats().expect("stats");
        let reloads = stats.iter().filter(|(name, value)| name.contains("vm_reload") && *value > 0);
        lines.chain(reloads.map(|(name, value)| format!("{name}: {value}"))).collect()
    }

    /// The end of a test: all that was told went well with the filter too.
    pub fn close(mut self) {
        assert!(self.healthy(), "{:?}", self.failures());
    }

    fn exchange(&self, sent: Sent) -> &Exchange {
        self.clients[sent.0].exchange.as_ref().expect("a client that has not left")
    }

    /// How many bytes Envoy has read from clients, all together.
    fn read(&self) -> usize {
        let stats = self.envoy.stats().expect("stats");
        usize::try_from(stats.get("http.clients.downstream_cx_rx_bytes_total")).expect("a count of bytes")
    }

    /// How many connections a worker has taken.
    fn connections(&self, worker: usize) -> u64 {
        self.connections_named(&format!(".worker_{worker}.downstream_cx_total"))
    }

    fn all_connections(&self) -> u64 {
        self.connections_named(".downstream_cx_total")
    }

    fn connections_named(&self, suffix: &str) -> u64 {
        let stats = self.envoy.stats().expect("stats");
        let of_workers = |name: &str| name.starts_with("listener.") && name.contains(".worker_");
        let named = stats.iter().filter(|(name, _)| of_workers(name) && name.ends_with(suffix));
        named.map(|(_, count)| count).sum()
    }

    /// Whether Envoy has sent a request on, or means to, that the model server does not have yet.
    fn on_its_way(&self) -> bool {
        let stats = self.envoy.stats().expect("stats");
        let sum = |name: &str| {
            CLUSTERS.iter().map(|cluster| stats.get(&format!("cluster.{cluster}.{name}"))).sum::<u64>()
        };
        let here = self.arrivals.look(|desk| desk.held.len() as u64);
        sum("upstream_rq_total") > here || sum("upstream_rq_pending_active") > 0
    }

    fn access_log_line(&self, client: &str) -> Option<Value> {
        let log = self.envoy.access_log().expect("the access log");
        log.into_iter().find(|line| line["client"] == client)
    }
}

impl World for RealWorld {
    fn send(&mut self, request: &Request) -> Sent {
        let before = self.read();
        let sent = self.launch(request);
        let exchange = self.exchange(sent);
        poll(
            || format!("Envoy to read {} {}", request.method, request.path),
            || {
                let read = || exchange.written().is_some_and(|written| self.read() >= before + written);
                (exchange.answered() || exchange.ended() || read()).then_some(())
            },
        );
        self.envoy.settle().expect("the worker answers");
        sent
    }

    fn response(&mut self, sent: Sent) -> Response {
        self.exchange(sent).response()
    }

    fn answered(&mut self, sent: Sent) -> bool {
        self.exchange(sent).answered()
    }

    fn leave(&mut self, sent: Sent) {
        let exchange = self.clients[sent.0].exchange.take().expect("a client that has not left");
        exchange.leave();
        self.envoy.settle().expect("the worker answers");
    }

    fn arrivals(&mut self, count: usize) -> Vec<Arrival> {
        self.arrivals.wait(
            |desk| format!("{count} requests at the model server, which has {}", desk.held.len()),
            |desk| Some(desk.held.get(..count)?.iter().map(|held| held.arrival.clone()).collect()),
        )
    }

    fn arrived(&mut self) -> usize {
        let deadline = Instant::now() + PATIENCE;
        let mut quiet = None;
        loop {
            self.envoy.settle().expect("the worker answers");
            let (here, on_its_way) = (self.arrivals.look(|desk| desk.held.len()), self.on_its_way());
            if quiet == Some(here) && !on_its_way {
                return here;
            }
            assert!(Instant::now() < deadline, "requests do not stop coming: {here}");
            quiet = (!on_its_way).then_some(here);
            thread::sleep(QUIET);
        }
    }

    fn answer(&mut self, arrival: usize, answer: Answer) {
        self.arrivals(arrival + 1);
        self.arrivals.look(|desk| desk.held[arrival].answer(answer));
    }

    fn pass(&mut self, time: Duration) {
        thread::sleep(time);
    }

    fn metric_becomes(&mut self, name: &str, value: u64) {
        poll(
            || format!("{name} to become {value}, is {}", self.metric(name)),
            || (self.metric(name) == value).then_some(()),
        );
    }

    fn logged(&mut self, sent: Sent, field: &str) -> String {
        let client = &self.clients[sent.0].local;
        let line = poll(|| format!("an access log line of {client}"), || self.access_log_line(client));
        match &line[field] {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    fn reconfigure(&mut self, policy: &str) {
        self.envoy.reconfigure(policy).expect("a policy that Envoy takes");
    }

    fn healthy(&mut self) -> bool {
        self.envoy.settle().is_ok() && self.failures().is_empty()
    }
}
