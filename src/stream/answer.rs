//! The model server's answer to one request, as far as it is watched: it streams through untouched.

use super::{Claim, Facts};
use crate::core::admission::Ending;
use crate::core::units::{Time, millis};
use crate::host::{Event, Host, Measure};
use crate::worker::Worker;

/// What has been seen of an answer.
pub struct Answer {
    released: Time,
    headers: Option<Time>,
    status: Option<u16>,
    /// Of a streamed answer.
    first_byte: Option<Time>,
    /// When it was whole.
    whole: Option<Time>,
}

impl Answer {
    /// Nothing seen yet of the answer to a request that went on at `released`.
    pub fn new(released: Time) -> Answer {
        Answer { released, headers: None, status: None, first_byte: None, whole: None }
    }

    /// Its headers have come.
    pub fn begin(&mut self, now: Time, status: Option<u16>, ended: bool) {
        self.headers = Some(now);
        self.status = status;
        self.whole = ended.then_some(now);
    }

    /// A piece of its body has come.
    pub fn piece<H: Host>(&mut self, worker: &Worker<H>, claim: &Claim, size: usize, ended: bool) {
        let first = claim.streamed && size > 0 && self.first_byte.is_none();
        if !first && !ended {
            return;
        }
        let now = worker.host.now();
        self.whole = ended.then_some(now);
        if first {
            self.first_byte = Some(now);
            worker.host.measure(claim.class, Measure::TtftMs, millis(now.since(self.released)));
        }
    }

    /// Its trailers have come.
    pub fn end(&mut self, now: Time) {
        self.whole = Some(now);
    }

    /// When it was whole, if it is one below 500: the model server is done with it.
    pub fn served(&self) -> Option<Time> {
        self.whole.filter(|_| self.status.is_some_and(|status| status < 500))
    }

    /// How it ended where it was not served.
    pub fn ending(&self) -> Ending {
        if self.status.is_some_and(|status| status >= 500) { Ending::Failed } else { Ending::Gone }
    }

    /// Whether the model server may still be at it: it was not whole, or it is Envoy's own, given after a timeout, say.
    pub fn broke_off<H: Host>(&self, worker: &Worker<H>) -> bool {
        let failed = self.status.is_none_or(|status| status >= 500);
        self.whole.is_none() || (failed && !worker.host.is_from_upstream())
    }

    /// Counts and measures it.
    pub fn close<H: Host>(&self, worker: &Worker<H>, claim: &Claim) {
        worker.host.count(Event::Response(claim.class, self.status.filter(|_| self.whole.is_some())));
        if let Some((first, whole)) = self.first_byte.zip(self.whole) {
            worker.host.measure(claim.class, Measure::DecodeMs, millis(whole.since(first)));
        }
    }

    /// Tells the client what was done, in response headers.
    pub fn describe<H: Host>(&self, worker: &Worker<H>, facts: &Facts) {
        for (name, value) in facts.headers(worker) {
            worker.host.add_response_header(name, value.as_bytes());
        }
        // Put together by hand: the formatting machinery costs more than all the rest of this.
        let mut timing = String::from("queue;dur=");
        timing.push_str(&facts.queue_ms.unwrap_or(0).to_string());
        if let Some(headers) = self.headers {
            timing.push_str(", upstream;dur=");
            timing.push_str(&millis(headers.since(self.released)).to_string());
        }
        worker.host.add_response_header("server-timing", timing.as_bytes());
    }
}

/// A `:status` value.
pub fn status(value: &[u8]) -> Option<u16> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
