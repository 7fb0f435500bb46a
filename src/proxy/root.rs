//! The root context: one a configuration and worker, plus those of the canary and main-thread VMs, which see no request.

use std::rc::Rc;

use log::LevelFilter;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use super::envoy::Envoy;
use super::http::Http;
use super::metrics::Metrics;
use super::raw::{self, Buffer};
use crate::core::config;
use crate::core::units::StreamId;
use crate::worker::Worker;

/// A configuration at work.
#[derive(Default)]
pub struct Root {
    worker: Option<Rc<Worker<Envoy>>>,
}

impl Context for Root {
    fn on_done(&mut self) -> bool {
        if let Some(worker) = &self.worker {
            worker.retire();
        }
        true
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        follow_log_level();
        let json = if size == 0 { Ok(Vec::new()) } else { raw::buffer(Buffer::PluginConfiguration, size) };
        let Ok(json) = json else {
            log::error!("the configuration could not be read from Envoy");
            return false;
        };
        match config::parse(&json) {
            Ok(policy) => {
                log::info!("policy in force: {policy}");
                let metrics = Metrics::define(&policy);
                self.worker = Some(Rc::new(Worker::new(Envoy::new(metrics), Rc::new(policy))));
                true
            }
            Err(mistakes) => {
                log::error!("the configuration is refused:\n{mistakes}");
                false
            }
        }
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        // Envoy makes no stream before it has accepted a configuration; without one there is nothing to apply.
        let worker = self.worker.as_ref().map(Rc::clone);
        if let Some(worker) = &worker {
            worker.start();
        }
        Some(Box::new(Http::new(StreamId(id), worker)))
    }

    fn on_tick(&mut self) {
        follow_log_level();
        if let Some(worker) = &self.worker {
            worker.on_tick();
        }
    }

    fn on_queue_ready(&mut self, token: u32) {
        if let Some(worker) = self.worker.as_ref().filter(|worker| worker.host.drain(token)) {
            worker.on_wake();
        }
    }
}

/// Lets through what Envoy's `wasm` logger would log, so that the rest costs nothing.
fn follow_log_level() {
    let level = match raw::log_level() {
        Ok(0) => LevelFilter::Trace,
        Ok(1) => LevelFilter::Debug,
        Ok(3) => LevelFilter::Warn,
        Ok(4 | 5) => LevelFilter::Error,
        Ok(_) | Err(_) => LevelFilter::Info,
    };
    log::set_max_level(level);
}
