//! What is known of a request, for its response headers and for the access log.

use std::rc::Rc;

use crate::core::clamp::Action;
use crate::core::engine::Judged;
use crate::core::units::ClassId;
use crate::host::{Host, Outcome};
use crate::worker::Worker;

/// The facts; `None` = not known, and then not told.
#[derive(Default)]
pub struct Facts {
    /// Its class.
    pub class: Option<ClassId>,
    /// How it came out.
    pub outcome: Option<Outcome>,
    /// Milliseconds waited.
    pub queue_ms: Option<u64>,
    prompt_chars: Option<u64>,
    prompt_tokens: Option<u64>,
    max_tokens: Option<u64>,
    action: Option<Action>,
}

impl Facts {
    /// Its body has been judged.
    pub fn judged(&mut self, judged: &Judged) {
        self.class = Some(judged.class);
        self.prompt_chars = Some(judged.prompt.chars);
        self.prompt_tokens = Some(judged.prompt.tokens);
        self.max_tokens = Some(judged.max_tokens);
        self.action = Some(judged.action);
    }

    /// The response headers that tell them to the client.
    pub fn headers<H: Host>(&self, worker: &Worker<H>) -> Vec<(&'static str, String)> {
        let facts = [
            ("x-sluice-class", self.class_name(worker)),
            ("x-sluice-max-tokens", number(self.max_tokens)),
            ("x-sluice-queue-ms", number(self.queue_ms)),
            ("x-sluice-max-tokens-action", self.action.map(|action| action.name().to_owned())),
        ];
        facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Shows them to the access log. The filter's own log callback comes before the loggers write, so that the end of
    /// the stream is early enough, and one place does for all ways to get there.
    pub fn publish<H: Host>(&self, worker: &Worker<H>) {
        let policy = Rc::clone(&worker.engine.borrow().policy);
        let class = self.class.and_then(|class| policy.classes.get(class.index()));
        let words = [
            ("sluice.class", class.map(|class| class.name.as_str())),
            ("sluice.outcome", self.outcome.map(Outcome::name)),
        ];
        for (name, value) in words {
            if let Some(value) = value {
                worker.host.publish(name, value);
            }
        }
        let numbers = [
            ("sluice.prompt_chars", self.prompt_chars),
            ("sluice.prompt_tokens", self.prompt_tokens),
            ("sluice.max_tokens", self.max_tokens),
            ("sluice.queue_ms", self.queue_ms),
        ];
        for (name, value) in numbers {
            if let Some(value) = number(value) {
                worker.host.publish(name, &value);
            }
        }
    }

    fn class_name<H: Host>(&self, worker: &Worker<H>) -> Option<String> {
        let engine = worker.engine.borrow();
        self.class.and_then(|class| engine.class(class)).map(|class| class.name.clone())
    }
}

fn number(value: Option<u64>) -> Option<String> {
    value.map(|value| value.to_string())
}
