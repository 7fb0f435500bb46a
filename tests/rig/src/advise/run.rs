//! One run in virtual time: clients, the filter or none, the server, and the moments at which they act.

use super::ask::Ask;
use super::filter::Filter;
use super::host::Effect;
use super::server::{Made, Server};
use crate::load::client::PATIENCE;
use crate::load::outcome::{Failure, Outcome, Served};
use crate::report::summary::Summary;
use crate::sim::spec::Spec;
use anyhow::{Result, ensure};
use sluice::core::policy::Policy;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What stands before the server, and how far apart things are.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The server.
    pub server: Spec,
    /// The filter's policy; `None` = Envoy without the filter.
    pub policy: Option<&'a Policy>,
    /// Envoy's workers.
    pub workers: u32,
    /// What a message takes from the client to Envoy, from there to the server, and back in the same way.
    pub hop: Duration,
}

/// What a wake-up of another callback of a worker takes: 40 to 150 us were measured on Envoy 1.40.
const WAKE: Duration = Duration::from_micros(100);

/// Sends all requests, each at its moment whatever the answers do, and waits for every end. A client waits for
/// [`PATIENCE`] and comes back no more, as in `rig demo`.
///
/// # Errors
/// Where the server could not be started, or Envoy has no worker.
pub fn run(asks: &[Ask], setting: &Setting) -> Result<Vec<Outcome>> {
    Ok(simulate(asks, setting)?.0)
}

/// The same, summed up.
///
/// # Errors
/// Where the server could not be started, or Envoy has no worker.
pub fn sum_up(asks: &[Ask], setting: &Setting) -> Result<Summary> {
    let (outcomes, line_peak) = simulate(asks, setting)?;
    Ok(Summary::of(&outcomes, line_peak as u64))
}

fn simulate(asks: &[Ask], setting: &Setting) -> Result<(Vec<Outcome>, usize)> {
    ensure!(setting.workers > 0, "Envoy has at least one worker");
    let mut run = Run {
        now: Duration::ZERO,
        hop: setting.hop,
        asks,
        fates: asks.iter().map(|ask| Fate { output: ask.output_tokens, first: None, end: None }).collect(),
        open: asks.len(),
        filter: setting.policy.map(|policy| Filter::new(policy, setting.workers)),
        epochs: vec![0; setting.workers as usize],
        server: Server::new(setting.server)?,
        events: BinaryHeap::new(),
        sequence: 0,
    };
    for (id, ask) in asks.iter().enumerate() {
        run.after(ask.at + setting.hop, Event::Received(id as u32));
    }
    run.carry_out();
    while run.open > 0 && run.next() {}
    let outcomes = asks.iter().zip(run.fates).map(|(ask, fate)| outcome(ask, fate)).collect();
    Ok((outcomes, run.server.line_peak))
}

struct Run<'a> {
    now: Duration,
    hop: Duration,
    asks: &'a [Ask],
    fates: Vec<Fate>,
    /// How many have no end yet.
    open: usize,
    filter: Option<Filter>,
    /// How often each worker's timer was set: what an earlier setting scheduled is void.
    epochs: Vec<u64>,
    server: Server,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    sequence: u64,
}

/// What becomes of a request.
struct Fate {
    /// The length of its answer, in tokens.
    output: u32,
    first: Option<Duration>,
    end: Option<(Duration, Result<(), Failure>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Envoy has a whole request.
    Received(u32),
    /// The server has it.
    Reached(u32),
    /// Envoy has the server's refusal of what is longer than the model takes.
    Rejected(u32),
    /// Envoy has the first token of an answer.
    Began(u32),
    /// Envoy has the last one.
    Ended(u32),
    /// A client waits no longer.
    GaveUp(u32),
    Tick {
        worker: u32,
        epoch: u64,
        period: Duration,
    },
    Wake(u32),
}

impl Run<'_> {
    /// Lets the next thing happen; false where there is none.
    fn next(&mut self) -> bool {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        match (event, self.server.edge()) {
            (Some(at), Some(edge)) if edge < at => self.step(edge),
            (None, Some(edge)) => self.step(edge),
            (Some(_), _) => {
                let Some(Reverse((at, _, event))) = self.events.pop() else { return false };
                self.now = at;
                self.handle(event);
                self.carry_out();
            }
            (None, None) => return false,
        }
        true
    }

    fn step(&mut self, edge: Duration) {
        self.now = edge;
        let (mut made, hop) = (Vec::new(), self.hop);
        self.server.step(|what| made.push(what));
        for what in made {
            let (Made::First(id) | Made::Last(id)) = what;
            let fate = &mut self.fates[id as usize];
            fate.first.get_or_insert(edge + hop * 2);
            self.after(edge + hop, if what == Made::First(id) { Event::Began(id) } else { Event::Ended(id) });
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Received(id) => {
                self.after(self.asks[id as usize].at + PATIENCE, Event::GaveUp(id));
                match &mut self.filter {
                    Some(filter) => filter.receive(now, id, &self.asks[id as usize]),
                    None => self.after(now + self.hop, Event::Reached(id)),
                }
            }
            Event::Reached(id) if self.is_open(id) => {
                let output = self.fates[id as usize].output;
                if self.server.push(now, id, self.asks[id as usize].prompt_tokens, output).is_err() {
                    self.after(now + self.hop, Event::Rejected(id));
                }
            }
            Event::Began(id) if self.is_open(id) => {
                if let Some(filter) = &mut self.filter {
                    filter.answer_begins(now, id);
                }
            }
            Event::Ended(id) if self.is_open(id) => self.answered(id, Ok(())),
            Event::Rejected(id) if self.is_open(id) => {
                self.answered(id, Err(Failure::Status(400, String::new())));
            }
            Event::GaveUp(id) if self.is_open(id) => {
                if let Some(filter) = &mut self.filter {
                    filter.end(now, id);
                }
                self.server.drop(id);
                self.end(id, now, Err(Failure::TimedOut));
            }
            Event::Tick { worker, epoch, period } if self.epochs[worker as usize] == epoch => {
                if let Some(filter) = &self.filter {
                    filter.tick(now, worker);
                }
                self.after(now + period, Event::Tick { worker, epoch, period });
            }
            Event::Wake(worker) => {
                if let Some(filter) = &self.filter {
                    filter.wake(now, worker);
                }
            }
            // Of a request that is over, or of a timer that was set anew.
            Event::Reached(_)
            | Event::Rejected(_)
            | Event::Began(_)
            | Event::Ended(_)
            | Event::GaveUp(_)
            | Event::Tick { .. } => {}
        }
    }

    /// The server's answer is over, of whatever kind.
    fn answered(&mut self, id: u32, how: Result<(), Failure>) {
        if let Some(filter) = &mut self.filter {
            filter.answer_ends(self.now, id);
        }
        self.end(id, self.now + self.hop, how);
    }

    /// Does what the filter has decided.
    fn carry_out(&mut self) {
        loop {
            let effects = self.filter.as_ref().map(Filter::effects).unwrap_or_default();
            if effects.is_empty() {
                return;
            }
            effects.into_iter().for_each(|effect| self.carry_out_one(effect));
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::Bounds(id, most) => {
                let output = &mut self.fates[id.0 as usize].output;
                *output = u32::try_from(most).map_or(*output, |most| most.min(*output));
            }
            Effect::Resumes(id) => self.after(self.now + self.hop, Event::Reached(id.0)),
            Effect::Refuses(id, status, reason) => {
                if let Some(filter) = &mut self.filter {
                    filter.end(self.now, id.0);
                }
                self.end(id.0, self.now + self.hop, Err(Failure::Status(status, reason.to_owned())));
            }
            Effect::Wakes(worker) => self.after(self.now + WAKE, Event::Wake(worker)),
            Effect::TicksEvery(worker, period) => {
                self.epochs[worker as usize] += 1;
                let epoch = self.epochs[worker as usize];
                self.after(self.now + period, Event::Tick { worker, epoch, period });
            }
        }
    }

    fn after(&mut self, at: Duration, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn is_open(&self, id: u32) -> bool {
        self.fates[id as usize].end.is_none()
    }

    fn end(&mut self, id: u32, at: Duration, how: Result<(), Failure>) {
        if self.is_open(id) {
            self.fates[id as usize].end = Some((at, how));
            self.open -= 1;
        }
    }
}

fn outcome(ask: &Ask, fate: Fate) -> Outcome {
    let (end, how) = fate.end.unwrap_or((ask.at + PATIENCE, Err(Failure::TimedOut)));
    let result = how.map(|()| Served {
        first_token: fate.first.unwrap_or(end).saturating_sub(ask.at),
        tokens: fate.output,
        gaps: Vec::new(),
        tagged: None,
        limit_action: None,
    });
    Outcome {
        class: ask.class,
        at: ask.at,
        late: Duration::ZERO,
        attempts: 1,
        took: end.saturating_sub(ask.at),
        result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::traffic::Class;
    use crate::sim::preset::Preset;
    use sluice::core::config;

    const HOP: Duration = Duration::from_millis(1);

    /// 15 ms a step alone, 20 ms with two; prompts cost nothing.
    fn server() -> Spec {
        Spec {
            max_num_seqs: 2,
            base: Duration::from_millis(10),
            per_sequence: Duration::from_millis(5),
            per_prefill_token: Duration::ZERO,
            ..Preset::Gpu.spec()
        }
    }

    fn long(at: u64, output_tokens: u32) -> Ask {
        let at = Duration::from_millis(at);
        Ask {
            at,
            class: Class::Long,
            prompt_tokens: 1_000,
            prompt_chars: 4_000,
            output_tokens,
            max_tokens: None,
        }
    }

    fn under(policy: &str, asks: &[Ask], workers: u32) -> Vec<Outcome> {
        let policy = config::parse(policy.as_bytes()).unwrap();
        run(asks, &Setting { server: server(), policy: Some(&policy), workers, hop: HOP }).unwrap()
    }

    const ONE: &str = r#"{"limits": {"max_tokens": 1000, "default_max_tokens": 1000},
        "classes": [{"name": "all", "concurrency": 1, "queue": {"capacity": 1, "timeout": "2s"}}]}"#;

    #[test]
    fn one_runs_one_waits_in_vain_and_one_finds_no_place() {
        for workers in [1, 2] {
            let outcomes = under(ONE, &[long(0, 500), long(10, 5), long(20, 5), long(7_600, 5)], workers);
            let served = |outcome: &Outcome| outcome.result.as_ref().is_ok();
            assert!(served(&outcomes[0]) && served(&outcomes[3]), "{outcomes:?}");
            // 500 steps of 15 ms, and four ways of 1 ms.
            assert_eq!(outcomes[0].took, Duration::from_millis(7_504));
            assert_eq!(outcomes[1].result, Err(Failure::Status(503, "queue_timeout".into())));
            let late = outcomes[1].took - Duration::from_millis(2_002);
            assert!(late <= Duration::from_millis(10), "one tick: {late:?}");
            assert_eq!(outcomes[2].result, Err(Failure::Status(429, "queue_full".into())));
            assert_eq!(outcomes[2].took, 2 * HOP);
        }
    }

    #[test]
    fn who_waits_gets_the_slot_when_it_is_given_back() {
        let outcomes = under(ONE, &[long(0, 100), long(10, 5)], 1);
        // Back at Envoy after 1,503 ms, woken, sent on, five steps, and back.
        let expected = Duration::from_millis(1_503 + 1 + 75 + 2 - 10) + WAKE;
        assert_eq!(outcomes[1].took, expected);
    }

    #[test]
    fn an_output_limit_cuts_the_answer_off() {
        let policy = r#"{"limits": {"max_tokens": 8, "default_max_tokens": 4}}"#;
        let tokens = |outcome: &Outcome| outcome.result.clone().map(|served| served.tokens);
        let asks = [long(0, 100), Ask { max_tokens: Some(50), ..long(1, 100) }, long(2, 3)];
        let outcomes = under(policy, &asks, 1);
        assert_eq!(outcomes.iter().map(tokens).collect::<Vec<_>>(), [Ok(4), Ok(8), Ok(3)]);
    }

    #[test]
    fn a_client_gives_up_and_its_place_is_free() {
        let policy = r#"{"limits": {"max_tokens": 9000, "default_max_tokens": 9000},
            "classes": [{"name": "all", "concurrency": 1, "queue": {"timeout": "5m"}}]}"#;
        let outcomes = under(policy, &[long(0, 9_000), long(1_000, 10), long(59_000, 10)], 1);
        assert_eq!(outcomes[0].result, Err(Failure::TimedOut));
        assert_eq!(outcomes[0].took, PATIENCE);
        // The slot of one who left lingers for 20 ms; the next one is still waiting then.
        assert!(outcomes[1].result.is_ok() && outcomes[2].result.is_ok(), "{outcomes:?}");
        assert!(outcomes[2].took < Duration::from_secs(2), "{outcomes:?}");
    }
}
