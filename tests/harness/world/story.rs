//! What stories do and see of [`NativeWorld`].

use std::time::Duration;

use super::NativeWorld;
use crate::harness::headers::Headers;
use crate::harness::{ending, response};
use crate::stories::{Answer, Arrival, Request, Response, Sent, World};

impl World for NativeWorld {
    fn send(&mut self, request: &Request) -> Sent {
        let worker = self.turn % self.crew.len();
        self.turn += 1;
        self.send_on(worker, request)
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
        self.on_stream(sent.0, ending::disconnect);
    }

    fn arrivals(&mut self, count: usize) -> Vec<Arrival> {
        self.wait("arrivals", |process| {
            let upstream = process.upstream();
            (upstream.arrivals().len() >= count).then(|| upstream.arrivals().take(count).cloned().collect())
        })
    }

    fn arrived(&mut self) -> usize {
        self.crew.settle();
        self.process.upstream().arrivals().len()
    }

    fn answer(&mut self, arrival: usize, answer: Answer) {
        let exchange = self.process.upstream().exchange(arrival);
        self.on_stream(exchange, move |id| match answer {
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
        self.crew.pass(time);
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
