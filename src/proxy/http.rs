//! The HTTP context: Envoy's callbacks of one stream, handed on to [`Stream`].

use std::cell::RefCell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext};
use proxy_wasm::types::Action;

use super::envoy::Envoy;
use crate::core::units::StreamId;
use crate::host::{Flow, Host};
use crate::stream::Stream;
use crate::worker::Worker;

/// One stream; without a worker it passes.
pub struct Http {
    id: StreamId,
    at: Option<(Rc<Worker<Envoy>>, Shared)>,
}

type Shared = Rc<RefCell<Stream>>;

impl Http {
    /// A stream that has just begun.
    pub fn new(id: StreamId, worker: Option<Rc<Worker<Envoy>>>) -> Http {
        let at = worker.map(|worker| {
            let stream = Stream::new(id, worker.host.now());
            (worker, Rc::new(RefCell::new(stream)))
        });
        Http { id, at }
    }

    fn on_request(&self, callback: impl FnOnce(&mut Stream, &Worker<Envoy>) -> Flow) -> Action {
        let flow = self.at.as_ref().map(|(worker, stream)| callback(&mut stream.borrow_mut(), worker));
        if flow == Some(Flow::Hold) { Action::Pause } else { Action::Continue }
    }

    fn on_response(&self, callback: impl FnOnce(&mut Stream, &Worker<Envoy>)) -> Action {
        if let Some((worker, stream)) = &self.at {
            callback(&mut stream.borrow_mut(), worker);
        }
        Action::Continue
    }

    fn on_end(&self) {
        self.on_response(|stream, worker| stream.on_end(worker));
    }
}

impl Context for Http {
    fn on_done(&mut self) -> bool {
        self.on_end();
        true
    }
}

impl HttpContext for Http {
    fn on_http_request_headers(&mut self, _: usize, ended: bool) -> Action {
        #[cfg(feature = "trap")]
        super::trap::obey();
        let action = self.on_request(|stream, worker| stream.on_request_headers(worker, ended));
        if let Some((worker, stream)) = self.at.as_ref().filter(|(_, stream)| stream.borrow().is_held()) {
            worker.keep(self.id, stream);
        }
        action
    }

    fn on_http_request_body(&mut self, size: usize, ended: bool) -> Action {
        self.on_request(|stream, worker| stream.on_request_body(worker, size, ended))
    }

    fn on_http_request_trailers(&mut self, _: usize) -> Action {
        self.on_request(|stream, worker| stream.on_request_trailers(worker))
    }

    fn on_http_response_headers(&mut self, _: usize, ended: bool) -> Action {
        self.on_response(|stream, worker| stream.on_response_headers(worker, ended))
    }

    fn on_http_response_body(&mut self, size: usize, ended: bool) -> Action {
        self.on_response(|stream, worker| stream.on_response_body(worker, size, ended))
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        self.on_response(|stream, worker| stream.on_response_trailers(worker))
    }

    fn on_log(&mut self) {
        self.on_end();
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.on_end();
    }
}
