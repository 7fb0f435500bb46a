//! The engine: lets the steps of a [`Cluster`] take their time and hands the tokens out.

use super::gauges::Gauges;
use crate::sim::cluster::{Cluster, Event};
use crate::sim::job::{Job, Token};
use crate::sim::spec::Spec;
use anyhow::Result;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// A running engine. It ends when the last handle and the last answer are gone.
#[derive(Clone, Debug)]
pub struct Engine {
    requests: UnboundedSender<(Job, Answer)>,
    gauges: Arc<Gauges>,
}

type Answer = UnboundedSender<Token>;

/// Who asked. Times are since the engine's start.
#[derive(Debug)]
struct Caller {
    answer: Answer,
    arrived: Duration,
    /// When it had its latest token.
    latest: Cell<Duration>,
}

impl Engine {
    /// Starts an engine on the present tokio runtime; an error says what is wrong with `spec`.
    pub fn start(spec: Spec) -> Result<Engine> {
        let cluster = Cluster::new(spec)?;
        let (requests, inbox) = unbounded_channel();
        let gauges = Arc::new(Gauges::new()?);
        tokio::spawn(run(cluster, inbox, Arc::clone(&gauges)));
        Ok(Engine { requests, gauges })
    }

    /// Asks for an answer; one that is longer than the model takes ends without a token. To drop the receiver is to
    /// leave: the place is free at the next step.
    pub fn submit(&self, job: Job) -> UnboundedReceiver<Token> {
        let (answer, tokens) = unbounded_channel();
        // Fails only when the runtime is going down; the receiver then just ends.
        let _ = self.requests.send((job, answer));
        tokens
    }

    /// The engine's figures.
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }
}

async fn run(mut cluster: Cluster<Caller>, mut inbox: UnboundedReceiver<(Job, Answer)>, gauges: Arc<Gauges>) {
    let start = Instant::now();
    let enter = |cluster: &mut Cluster<Caller>, (job, answer)| {
        // Too long: dropping the answer ends it.
        let _ = cluster.push(Caller { answer, arrived: start.elapsed(), latest: Cell::default() }, job);
    };
    loop {
        while let Ok(request) = inbox.try_recv() {
            enter(&mut cluster, request);
        }
        cluster.retain(|caller| !caller.answer.is_closed());
        // A step begins where the last one ended and not at the present moment, so that timers that fire late make
        // single steps late but the server no slower.
        cluster.advance(start.elapsed(), |caller, at, event| caller.tell(at, event, &gauges));
        gauges.note(&cluster);
        let request = match cluster.due() {
            Some(due) => tokio::select! {
                biased;
                () = sleep_until(start + due) => None,
                // Another replica may idle. Where nobody can ask any more, only the steps go on.
                Some(request) = inbox.recv() => Some(request),
            },
            None => match inbox.recv().await {
                Some(request) => Some(request),
                None => return,
            },
        };
        if let Some(request) = request {
            enter(&mut cluster, request);
        }
    }
}

impl Caller {
    fn tell(&self, at: Duration, event: Event, gauges: &Gauges) {
        let waited = at.saturating_sub(self.arrived).as_secs_f64();
        let Event::Token(token) = event else {
            gauges.queue_time.observe(waited);
            return;
        };
        match token.index {
            0 => gauges.first_token.observe(waited),
            _ => gauges.inter_token.observe((at - self.latest.get()).as_secs_f64()),
        }
        self.latest.set(at);
        if token.last {
            gauges.whole.observe(waited);
            gauges.finish();
        }
        // The reader may have left during the step; the next one drops it.
        let _ = self.answer.send(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::preset::Preset;

    fn engine() -> Engine {
        let spec = Spec {
            max_num_seqs: 2,
            base: Duration::from_millis(10),
            per_sequence: Duration::from_millis(5),
            per_prefill_token: Duration::from_millis(1),
            ..Preset::Gpu.spec()
        };
        Engine::start(spec).unwrap()
    }

    fn job(prompt_tokens: u32, output_tokens: u32) -> Job {
        Job { prompt_tokens, output_tokens, ..Job::default() }
    }

    /// The moments at which the tokens of an answer come, in milliseconds since `start`.
    async fn moments(mut tokens: UnboundedReceiver<Token>, start: Instant) -> Vec<u128> {
        let mut moments = Vec::new();
        while tokens.recv().await.is_some() {
            moments.push(start.elapsed().as_millis());
        }
        moments
    }

    #[tokio::test(start_paused = true)]
    async fn steps_take_their_time() {
        let engine = engine();
        let start = Instant::now();
        assert_eq!(moments(engine.submit(job(1, 3)), start).await, [16, 31, 46]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_prompt_is_felt_by_the_neighbour() {
        let engine = engine();
        let start = Instant::now();
        let first = engine.submit(job(1, 4));
        let second = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            moments(engine.submit(job(1_000, 1)), start).await
        };
        let (first, second) = tokio::join!(moments(first, start), second);
        assert_eq!(first, [16, 31, 1_051, 1_066]);
        assert_eq!(second, [1_051]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_third_waits_for_one_of_two_places() {
        let engine = engine();
        let start = Instant::now();
        let (one, two, three) =
            (engine.submit(job(1, 2)), engine.submit(job(1, 3)), engine.submit(job(1, 1)));
        let (one, two, three) = tokio::join!(moments(one, start), moments(two, start), moments(three, start));
        assert_eq!((one, two, three), (vec![22, 42], vec![22, 42, 63], vec![63]));
        assert_eq!(engine.gauges().waiting_peak.load(std::sync::atomic::Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_frees_its_place_at_the_next_step() {
        let engine = engine();
        let start = Instant::now();
        let (mut one, two) = (engine.submit(job(1, 1_000)), engine.submit(job(1, 3)));
        let three = engine.submit(job(1, 1));
        assert!(one.recv().await.is_some());
        drop(one);
        let (two, three) = tokio::join!(moments(two, start), moments(three, start));
        assert_eq!((two, three), (vec![22, 42, 63], vec![63]));
    }
}
