//! Envoy as the filter's host.

use std::cell::Cell;
use std::time::Duration;

use super::metrics::Metrics;
use super::raw::{self, Buffer, Map};
use super::{map, raw::Failed};
use crate::core::admission::{Connection, Demand, Limit, Writer};
use crate::core::refusal::{Family, Refusal};
use crate::core::units::{ClassId, StreamId, Time};
use crate::host::{Event, Host, Measure, Section};

/// Envoy, as one root context of one worker meets it.
pub struct Envoy {
    metrics: Metrics,
    queue: Cell<Option<u32>>,
}

impl Envoy {
    /// Counts into `metrics`.
    pub fn new(metrics: Metrics) -> Envoy {
        Envoy { metrics, queue: Cell::new(None) }
    }

    /// Takes all messages out of the queue, if it is ours: one wake-up does for all of them.
    pub fn drain(&self, token: u32) -> bool {
        let ours = self.queue.get() == Some(token);
        while ours && raw::dequeue(token).is_ok() {}
        ours
    }
}

impl Host for Envoy {
    fn now(&self) -> Time {
        Time(raw::monotonic_nanos())
    }

    fn fields(&self, of: Section, each: &mut dyn FnMut(&[u8], &[u8])) {
        // Without headers there is nothing to hand out: a request without a path passes, a response without a status
        // is counted as broken off.
        let bytes = raw::headers(map_of(of)).unwrap_or_default();
        map::pairs(&bytes).for_each(|(name, value)| each(name, value));
    }

    fn remove_field(&self, of: Section, name: &[u8]) -> bool {
        raw::remove_header(map_of(of), name).is_ok()
    }

    fn set_request_header(&self, name: &str, value: &[u8]) -> bool {
        raw::set_header(Map::Request, name, value).is_ok()
    }

    fn request_body(&self, size: usize) -> Option<Vec<u8>> {
        raw::buffer(Buffer::RequestBody, size).ok()
    }

    fn replace_body_prefix(&self, len: usize, bytes: &[u8]) -> bool {
        raw::replace_body_prefix(len, bytes).is_ok()
    }

    fn request_bytes(&self) -> Option<u64> {
        let bytes = raw::property("request\0total_size").ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn connection(&self) -> Option<Connection> {
        let id = raw::property("connection\0id").ok()?;
        let address = raw::property("destination\0address").ok()?;
        let id = u64::from_le_bytes(id.try_into().ok()?);
        Some(Connection::new(id, std::str::from_utf8(&address).ok()?))
    }

    fn resume(&self) -> bool {
        raw::resume_request().is_ok()
    }

    fn refuse(&self, refusal: &Refusal, family: Family, more: &[(&str, String)]) -> bool {
        log::debug!("refused with {}: {}", refusal.status, refusal.reason.name());
        let own = refusal.headers();
        let json = [("content-type", "application/json")];
        let rest = own.iter().chain(more).map(|(name, value)| (*name, value.as_str()));
        let headers = map::serialize(json.into_iter().chain(rest));
        let body = refusal.body(family);
        raw::respond(refusal.status, refusal.reason.details(), body.as_bytes(), &headers).is_ok()
    }

    fn add_response_header(&self, name: &str, value: &[u8]) -> bool {
        raw::add_header(Map::Response, name, value).is_ok()
    }

    fn is_from_upstream(&self) -> bool {
        raw::property("response\0code_details").is_ok_and(|details| details == b"via_upstream")
    }

    fn warn(&self, what: &str) {
        log::warn!("{what}");
    }

    fn publish(&self, name: &str, value: &str) {
        // Refused only for a name that Envoy's own configuration has taken; there is nobody to tell.
        let _ = raw::set_property(name, value.as_bytes());
    }

    fn show(&self, class: ClassId, demand: &Demand, limit: Limit) {
        self.metrics.show(class, demand, limit);
    }

    fn count(&self, event: Event) {
        self.metrics.count(event);
    }

    fn measure(&self, class: ClassId, measure: Measure, value: u64) {
        self.metrics.measure(class, measure, value);
    }

    fn act_for(&self, stream: StreamId) -> bool {
        raw::set_effective_context(stream.0).is_ok()
    }

    // Under a name that nobody else has, since the last one to register a name takes it over.
    fn listen(&self) -> Writer {
        let uid = raw::random();
        match raw::register_queue(&format!("sluice.{uid:016x}")) {
            Ok(token) => self.queue.set(Some(token)),
            Err(Failed(status)) => log::warn!("no queue for wake-ups (status {status}): the timer has to do"),
        }
        Writer { uid, queue: self.queue.get().unwrap_or_default() }
    }

    fn wake(&self, queue: u32) -> bool {
        raw::enqueue(queue).is_ok()
    }

    fn read_shared(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        raw::shared_data(key).ok()
    }

    fn write_shared(&self, key: &str, record: &[u8], version: Option<u32>) -> bool {
        raw::set_shared_data(key, record, version.unwrap_or(u32::MAX)).is_ok()
    }

    fn tick_every(&self, period: Duration) {
        let _ = raw::set_tick_period(u32::try_from(period.as_millis()).unwrap_or(u32::MAX));
    }
}

fn map_of(section: Section) -> Map {
    match section {
        Section::RequestHeaders => Map::Request,
        Section::RequestTrailers => Map::RequestTrailers,
        Section::ResponseHeaders => Map::Response,
        Section::ResponseTrailers => Map::ResponseTrailers,
    }
}
