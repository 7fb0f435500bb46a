//! One Envoy process: what its threads share, how it is configured, and what the outside has seen of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::clock::Clock;
use super::metrics::Metrics;
use super::shared::{Queues, SharedData};
use super::upstream::Upstream;

/// Deferred actions may nest this deep; Envoy's stack overflowed at some 300, and the filter promises half of this.
pub const DEEPEST_NESTING: usize = 64;

/// How Envoy itself is configured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `PluginConfig.allow_on_headers_stop_iteration`.
    pub hold_headers: bool,
    /// `request_body_buffer_limit` of the route first matched, in bytes.
    pub buffer_limit: usize,
    /// `VmConfig.vm_id`, the name space of shared data and queues.
    pub vm_id: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { hold_headers: true, buffer_limit: 16 << 20, vm_id: "sluice".to_owned() }
    }
}

/// What the outside has seen of one request.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// The earlier exchange whose connection it comes by, if any.
    pub connection: Option<usize>,
    /// 0 before the response headers.
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The answer came whole.
    pub complete: bool,
    /// The access log's line, once the request has ended.
    pub log: Option<AccessLog>,
    /// Calls into the VM at the request's end, in order.
    pub end_calls: Vec<&'static str>,
}

/// The fields of an access log line that tests look at.
#[derive(Clone, Debug, Default)]
pub struct AccessLog {
    /// `%RESPONSE_CODE_DETAILS%`.
    pub details: String,
    /// The filter state by name, with Envoy's prefix `wasm.`.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// What the threads of a process share.
pub struct Process {
    pub settings: Settings,
    pub clock: Clock,
    data: Mutex<SharedData>,
    queues: Mutex<Queues>,
    metrics: Mutex<Metrics>,
    upstream: Mutex<Upstream>,
    exchanges: Mutex<Vec<Exchange>>,
    logs: Mutex<Vec<(u32, String)>>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
    faults: Mutex<Vec<String>>,
    deepest: AtomicUsize,
    endpoints: AtomicBool,
}

impl Process {
    pub fn new(settings: Settings) -> Process {
        Process {
            settings,
            clock: Clock::default(),
            data: Mutex::default(),
            queues: Mutex::default(),
            metrics: Mutex::default(),
            upstream: Mutex::default(),
            exchanges: Mutex::default(),
            logs: Mutex::default(),
            calls: Mutex::default(),
            faults: Mutex::default(),
            deepest: AtomicUsize::new(0),
            endpoints: AtomicBool::new(true),
        }
    }

    pub fn data(&self) -> MutexGuard<'_, SharedData> {
        lock(&self.data)
    }

    pub fn queues(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    pub fn metrics(&self) -> MutexGuard<'_, Metrics> {
        lock(&self.metrics)
    }

    pub fn upstream(&self) -> MutexGuard<'_, Upstream> {
        lock(&self.upstream)
    }

    /// Log lines with their level, 0 (trace) to 5 (critical).
    pub fn logs(&self) -> MutexGuard<'_, Vec<(u32, String)>> {
        lock(&self.logs)
    }

    /// How often each host function was called.
    pub fn calls(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        lock(&self.calls)
    }

    /// The number of the connection by which a request comes: its own one, where it was not said to come by that of an
    /// earlier one.
    pub fn connection(&self, exchange: usize) -> usize {
        self.exchange(exchange, |it| it.connection).unwrap_or(exchange) + 1
    }

    /// A new request's place among the exchanges.
    pub fn open_exchange(&self) -> usize {
        let mut exchanges = lock(&self.exchanges);
        exchanges.push(Exchange::default());
        exchanges.len() - 1
    }

    /// Looks at, or adds to, what was seen of a request.
    pub fn exchange<T>(&self, index: usize, look: impl FnOnce(&mut Exchange) -> T) -> T {
        look(&mut lock(&self.exchanges)[index])
    }

    /// Notes what a filter must never do, or what would have killed Envoy; the test fails with it in the end.
    pub fn fault(&self, what: impl Into<String>) {
        lock(&self.faults).push(what.into());
    }

    pub fn faults(&self) -> Vec<String> {
        lock(&self.faults).clone()
    }

    /// Notes how deep deferred actions are nested now.
    pub fn nested(&self, depth: usize) {
        if self.deepest.fetch_max(depth, Ordering::SeqCst) <= DEEPEST_NESTING && depth > DEEPEST_NESTING {
            self.fault(format!("deferred actions nest deeper than {DEEPEST_NESTING}"));
        }
    }

    /// The deepest nesting of deferred actions so far.
    pub fn deepest(&self) -> usize {
        self.deepest.load(Ordering::SeqCst)
    }

    /// Whether the clusters have an endpoint; without one the router answers 503 at once.
    pub fn has_endpoints(&self) -> bool {
        self.endpoints.load(Ordering::SeqCst)
    }

    pub fn set_endpoints(&self, present: bool) {
        self.endpoints.store(present, Ordering::SeqCst);
    }
}

/// A test that has already failed must not hide its reason behind a poisoned lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
