//! The engine: lets the steps of a [`Batch`] take their time and hands the tokens out.

use super::batch::{Batch, Token};
use super::cost::Cost;
use super::gauges::Gauges;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

/// A running engine. It ends when the last handle and the last answer are gone.
#[derive(Clone, Debug)]
pub struct Engine {
    jobs: UnboundedSender<Job>,
    gauges: Arc<Gauges>,
}

/// A generation on its way to the batch.
#[derive(Debug)]
struct Job {
    prompt_tokens: u32,
    output_tokens: u32,
    answer: UnboundedSender<Token>,
}

impl Engine {
    /// Starts an engine on the present tokio runtime.
    pub fn start(cost: Cost) -> Engine {
        let (jobs, inbox) = unbounded_channel();
        let gauges = Arc::new(Gauges::default());
        tokio::spawn(run(cost, inbox, Arc::clone(&gauges)));
        Engine { jobs, gauges }
    }

    /// Asks for an answer of exactly `output_tokens` (at least 1). To drop the receiver is to leave: the place
    /// is free at the next step.
    pub fn submit(&self, prompt_tokens: u32, output_tokens: u32) -> UnboundedReceiver<Token> {
        let (answer, tokens) = unbounded_channel();
        // Fails only when the runtime is going down; the receiver then just ends.
        let _ = self.jobs.send(Job { prompt_tokens, output_tokens, answer });
        tokens
    }

    /// The engine's figures.
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }
}

async fn run(cost: Cost, mut inbox: UnboundedReceiver<Job>, gauges: Arc<Gauges>) {
    let mut batch: Batch<UnboundedSender<Token>> = Batch::new(cost);
    // Where the last step ended. The next one starts there and not at the present moment, so that timers that
    // fire late make single steps late but the server no slower.
    let mut edge = Instant::now();
    loop {
        while let Ok(job) = inbox.try_recv() {
            enter(&mut batch, job, &gauges);
        }
        batch.retain(|answer| !answer.is_closed());
        let lasts = batch.begin();
        gauges.note(batch.running(), batch.waiting());
        match lasts {
            Some(lasts) => {
                edge += lasts;
                sleep_until(edge).await;
                batch.finish(|answer, token| {
                    gauges.generation_tokens.fetch_add(1, Relaxed);
                    // The reader may have left during the step; the next step drops it.
                    let _ = answer.send(token);
                });
            }
            None => {
                let Some(job) = inbox.recv().await else { return };
                enter(&mut batch, job, &gauges);
                edge = Instant::now();
            }
        }
    }
}

fn enter(batch: &mut Batch<UnboundedSender<Token>>, job: Job, gauges: &Gauges) {
    gauges.prompt_tokens.fetch_add(u64::from(job.prompt_tokens), Relaxed);
    batch.push(job.answer, job.prompt_tokens, job.output_tokens);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const COST: Cost = Cost {
        max_num_seqs: 2,
        base: Duration::from_millis(10),
        per_sequence: Duration::from_millis(5),
        per_prompt_token: Duration::from_millis(1),
    };

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
        let engine = Engine::start(COST);
        let start = Instant::now();
        assert_eq!(moments(engine.submit(0, 3), start).await, [15, 30, 45]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_prompt_is_felt_by_the_neighbour() {
        let engine = Engine::start(COST);
        let start = Instant::now();
        let first = engine.submit(0, 4);
        let second = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            moments(engine.submit(1_000, 1), start).await
        };
        let (first, second) = tokio::join!(moments(first, start), second);
        assert_eq!(first, [15, 30, 1_050, 1_065]);
        assert_eq!(second, [1_050]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_third_waits_for_one_of_two_places() {
        let engine = Engine::start(COST);
        let start = Instant::now();
        let (one, two, three) = (engine.submit(0, 2), engine.submit(0, 3), engine.submit(0, 1));
        let (one, two, three) = tokio::join!(moments(one, start), moments(two, start), moments(three, start));
        assert_eq!((one, two, three), (vec![20, 40], vec![20, 40, 60], vec![60]));
        assert_eq!(engine.gauges().waiting_peak.load(Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_frees_its_place_at_the_next_step() {
        let engine = Engine::start(COST);
        let start = Instant::now();
        let (mut one, two) = (engine.submit(0, 1_000), engine.submit(0, 3));
        let three = engine.submit(0, 1);
        assert!(one.recv().await.is_some());
        drop(one);
        let (two, three) = tokio::join!(moments(two, start), moments(three, start));
        assert_eq!((two, three), (vec![20, 40, 60], vec![60]));
    }
}
