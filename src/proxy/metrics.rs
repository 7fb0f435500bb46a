//! The metrics, all defined when the policy is read: no name is ever made from a request.

use super::raw::{self, Metric};
use crate::core::admission::{Demand, Limit};
use crate::core::clamp::Action;
use crate::core::policy::{Class, Policy};
use crate::core::refusal::Reason;
use crate::core::units::{ClassId, millis};
use crate::host::{Event, Measure, Outcome};

/// The ids of one root's metrics.
pub struct Metrics {
    passed_through: Id,
    unclassified: Vec<(Outcome, Id)>,
    classes: Vec<ClassMetrics>,
}

struct ClassMetrics {
    outcomes: Vec<(Outcome, Id)>,
    actions: Vec<(Action, Id)>,
    responses: Vec<(Option<u16>, Id)>,
    measures: Vec<(Measure, Id)>,
    inflight: Id,
    queued: Id,
    limit: Id,
    /// Defined where there is a token budget.
    inflight_tokens: Id,
    limit_tokens: Id,
    objectives: Vec<(Id, u64)>,
}

/// A metric's id in this VM; `None` where the host would not define it, and then it is not counted.
type Id = Option<u32>;

const MEASURES: [(Measure, &str); 6] = [
    (Measure::QueueMs, "queue_ms"),
    (Measure::TtftMs, "ttft_ms"),
    (Measure::DecodeMs, "decode_ms"),
    (Measure::DurationMs, "duration_ms"),
    (Measure::PromptTokens, "prompt_tokens"),
    (Measure::MaxTokensEffective, "max_tokens_effective"),
];
/// Response codes by their first digit; what is none of these has broken off.
const CODES: [(Option<u16>, &str); 5] =
    [(Some(2), "2xx"), (Some(3), "3xx"), (Some(4), "4xx"), (Some(5), "5xx"), (None, "reset")];

impl Metrics {
    /// Defines the metrics of a policy.
    pub fn define(policy: &Policy) -> Metrics {
        let domain = policy.domain.as_str();
        let before_class =
            Reason::all().filter(|reason| !matches!(reason, Reason::QueueFull | Reason::QueueTimeout));
        Metrics {
            passed_through: define(Metric::Counter, &format!("sluice.passed_through_total.domain.{domain}")),
            unclassified: outcomes(
                domain,
                "none",
                before_class.map(Outcome::Refused).chain([Outcome::ClientGone]),
            ),
            classes: policy.classes.iter().map(|class| ClassMetrics::define(policy, class)).collect(),
        }
    }

    /// Shows what a class is up against, over all workers, and what it may have in flight.
    pub fn show(&self, class: ClassId, demand: &Demand, limit: Limit) {
        let Some(class) = self.class(class) else { return };
        set(class.inflight, u64::from(demand.inflight));
        set(class.queued, u64::from(demand.waiting));
        if let Some(slots) = limit.slots {
            set(class.limit, u64::from(slots));
        }
        if let Some(tokens) = limit.tokens {
            set(class.inflight_tokens, demand.tokens);
            set(class.limit_tokens, tokens);
        }
        for (id, value) in &class.objectives {
            set(*id, *value);
        }
    }

    /// Counts an event.
    pub fn count(&self, event: Event) {
        match event {
            Event::PassedThrough => add(self.passed_through, 1),
            Event::Outcome(class, outcome) => {
                let known = class
                    .and_then(|class| self.class(class))
                    .map_or(&self.unclassified, |class| &class.outcomes);
                add(find(known, outcome), 1);
            }
            Event::MaxTokens(class, action) => {
                add(self.class(class).and_then(|class| find(&class.actions, action)), 1);
            }
            Event::Response(class, status) => {
                let code = status.map(|status| status / 100);
                add(self.class(class).and_then(|class| find(&class.responses, code)), 1);
            }
        }
    }

    /// Adds a sample.
    pub fn measure(&self, class: ClassId, measure: Measure, value: u64) {
        if let Some(id) = self.class(class).and_then(|class| find(&class.measures, measure)) {
            let _ = raw::record_metric(id, value);
        }
    }

    fn class(&self, class: ClassId) -> Option<&ClassMetrics> {
        self.classes.get(class.index())
    }
}

impl ClassMetrics {
    fn define(whole: &Policy, policy: &Class) -> ClassMetrics {
        let (domain, class) = (whole.domain.as_str(), policy.name.as_str());
        let name = |name: &str| format!("sluice.{name}.domain.{domain}.class.{class}");
        // A request that is still in line when Envoy or the host gives up on it has a class, too.
        let after_class = [
            Outcome::Admitted,
            Outcome::ClientGone,
            Outcome::Refused(Reason::QueueFull),
            Outcome::Refused(Reason::QueueTimeout),
            Outcome::Refused(Reason::Misconfigured),
            Outcome::Refused(Reason::BodyTooLarge),
        ];
        let pool = whole.pools.iter().find(|pool| policy.pool.as_ref() == Some(&pool.name));
        let budget = policy.concurrency_tokens.or_else(|| pool.and_then(|pool| pool.concurrency_tokens));
        let budgeted = budget.map(|_| ());
        let actions = [Action::Kept, Action::Clamped, Action::Defaulted];
        let counter = |metric: &str, label: &str, value: &str| {
            define(Metric::Counter, &format!("{}.{label}.{value}", name(metric)))
        };
        ClassMetrics {
            outcomes: outcomes(domain, class, after_class.into_iter()),
            actions: actions
                .map(|action| (action, counter("max_tokens_total", "action", action.name())))
                .into(),
            responses: CODES.map(|(code, label)| (code, counter("responses_total", "code", label))).into(),
            measures: MEASURES
                .map(|(measure, metric)| (measure, define(Metric::Histogram, &name(metric))))
                .into(),
            inflight: define(Metric::Gauge, &name("inflight")),
            queued: define(Metric::Gauge, &name("queued")),
            limit: define(Metric::Gauge, &name("limit")),
            inflight_tokens: budgeted.and_then(|()| define(Metric::Gauge, &name("inflight_tokens"))),
            limit_tokens: budgeted.and_then(|()| define(Metric::Gauge, &name("limit_tokens"))),
            objectives: [("duration_p99", policy.slo.duration_p99), ("ttft_p99", policy.slo.ttft_p99)]
                .into_iter()
                .filter_map(|(slo, within)| Some((slo, millis(within?))))
                .map(|(slo, within)| {
                    (define(Metric::Gauge, &format!("{}.slo.{slo}", name("slo_ms"))), within)
                })
                .collect(),
        }
    }
}

fn outcomes(domain: &str, class: &str, outcomes: impl Iterator<Item = Outcome>) -> Vec<(Outcome, Id)> {
    let name = |outcome: Outcome| {
        format!("sluice.requests_total.domain.{domain}.class.{class}.outcome.{}", outcome.name())
    };
    outcomes.map(|outcome| (outcome, define(Metric::Counter, &name(outcome)))).collect()
}

fn define(kind: Metric, name: &str) -> Id {
    raw::define_metric(kind, name).ok()
}

fn find<K: PartialEq>(known: &[(K, Id)], key: K) -> Id {
    known.iter().find(|(known, _)| *known == key).and_then(|(_, id)| *id)
}

fn set(id: Id, value: u64) {
    if let Some(id) = id {
        let _ = raw::record_metric(id, value);
    }
}

fn add(id: Id, change: i64) {
    if let Some(id) = id {
        let _ = raw::increment_metric(id, change);
    }
}
