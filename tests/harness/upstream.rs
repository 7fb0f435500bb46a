//! The model server behind the router: what has arrived, whole and in order.

use super::headers::Headers;
use crate::stories::Arrival;

/// A request on its way to the model server, in the pieces that the router was given.
#[derive(Clone, Debug)]
pub struct Forwarded {
    pub cluster: String,
    pub headers: Headers,
    pub body: Vec<u8>,
    /// Whether it has all gone.
    pub complete: bool,
}

impl Forwarded {
    /// The route is chosen when the headers leave, by the class that they carry then, as the shipped routes do.
    pub fn new(headers: Headers) -> Forwarded {
        let short = headers.get("x-sluice-class") == Some(b"short".as_slice());
        let cluster = if short { "llm_short" } else { "llm_long" }.to_owned();
        Forwarded { cluster, headers, body: Vec::new(), complete: false }
    }

    /// What the server reads once the body has ended: nobody mends a content-length, so a longer body is cut there,
    /// and with a shorter one (`None`) the server waits for ever.
    fn read(self) -> Option<Arrival> {
        let text = |name| String::from_utf8_lossy(self.headers.get(name).unwrap_or_default()).into_owned();
        let mut body = self.body;
        if let Some(length) = self.headers.get("content-length") {
            let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
            if length > body.len() {
                return None;
            }
            body.truncate(length);
        }
        let (method, path) = (text(":method"), text(":path"));
        let regular = self.headers.iter().filter(|(name, _)| !name.starts_with(':'));
        let headers = regular.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(Arrival { cluster: self.cluster, method, path, headers, body })
    }
}

/// All requests that the model server has read, with the exchange that each belongs to.
#[derive(Default)]
pub struct Upstream {
    arrivals: Vec<(usize, Arrival)>,
    stuck: usize,
}

impl Upstream {
    /// A request whose body has ended.
    pub fn receive(&mut self, exchange: usize, request: Forwarded) {
        match request.read() {
            Some(arrival) => self.arrivals.push((exchange, arrival)),
            None => self.stuck += 1,
        }
    }

    pub fn arrivals(&self) -> impl ExactSizeIterator<Item = &Arrival> {
        self.arrivals.iter().map(|(_, arrival)| arrival)
    }

    /// The exchange that the `arrival`-th request belongs to.
    pub fn exchange(&self, arrival: usize) -> usize {
        self.arrivals[arrival].0
    }

    /// Requests whose body was shorter than their content-length: the server waits for the rest.
    pub fn stuck(&self) -> usize {
        self.stuck
    }
}
