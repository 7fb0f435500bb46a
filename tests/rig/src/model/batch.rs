//! The batch: who waits, who runs, how long a step lasts. No clock and no socket; the caller lets the time pass.

use super::cost::Cost;
use std::collections::VecDeque;
use std::time::Duration;

/// Continuous batching in iterations: [`Batch::begin`] admits and prices a step, [`Batch::finish`] ends it.
/// `T` is whatever the caller needs to tell whose token it is.
#[derive(Debug)]
pub struct Batch<T> {
    cost: Cost,
    waiting: VecDeque<Sequence<T>>,
    running: Vec<Sequence<T>>,
}

/// One generation.
#[derive(Debug)]
struct Sequence<T> {
    owner: T,
    prompt_tokens: u32,
    output_tokens: u32,
    made: u32,
}

/// One token of one sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its place in the answer, from 0.
    pub index: u32,
    /// Whether the answer ends with it.
    pub last: bool,
}

impl<T> Batch<T> {
    /// An empty batch.
    pub fn new(cost: Cost) -> Self {
        Batch { cost, waiting: VecDeque::new(), running: Vec::new() }
    }

    /// Puts a generation at the end of the waiting line. `output_tokens` must be at least 1.
    pub fn push(&mut self, owner: T, prompt_tokens: u32, output_tokens: u32) {
        self.waiting.push_back(Sequence { owner, prompt_tokens, output_tokens, made: 0 });
    }

    /// Forgets, waiting or running, all whose owner is not `wanted` any more.
    pub fn retain(&mut self, wanted: impl Fn(&T) -> bool) {
        self.waiting.retain(|sequence| wanted(&sequence.owner));
        self.running.retain(|sequence| wanted(&sequence.owner));
    }

    /// Begins a step: lets the longest waiting in while there is room. `None` when there is nothing to do.
    pub fn begin(&mut self) -> Option<Duration> {
        let room = self.cost.max_num_seqs.saturating_sub(self.running.len());
        let entering = self.waiting.len().min(room);
        let prompt_tokens: u32 =
            self.waiting.iter().take(entering).map(|sequence| sequence.prompt_tokens).sum();
        self.running.extend(self.waiting.drain(..entering));
        let sequences = u32::try_from(self.running.len()).ok().filter(|&running| running > 0)?;
        Some(self.cost.base + self.cost.per_sequence * sequences + self.cost.per_prompt_token * prompt_tokens)
    }

    /// Ends the step: every running sequence gets one token, those that have all of theirs leave.
    pub fn finish(&mut self, mut tell: impl FnMut(&T, Token)) {
        self.running.retain_mut(|sequence| {
            let token = Token { index: sequence.made, last: sequence.made + 1 >= sequence.output_tokens };
            sequence.made += 1;
            tell(&sequence.owner, token);
            !token.last
        });
    }

    /// How many sequences run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many sequences wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost {
        max_num_seqs: 3,
        base: Duration::from_millis(10),
        per_sequence: Duration::from_millis(1),
        per_prompt_token: Duration::from_millis(2),
    };

    /// Runs one step; its length and the owners who got a token.
    fn step(batch: &mut Batch<char>) -> (Duration, String) {
        let lasts = batch.begin().expect("something to do");
        let mut told = String::new();
        batch.finish(|&owner, _| told.push(owner));
        (lasts, told)
    }

    #[test]
    fn a_step_grows_with_the_batch() {
        let mut batch = Batch::new(COST);
        batch.push('a', 0, 9);
        assert_eq!(step(&mut batch), (Duration::from_millis(11), "a".into()));
        batch.push('b', 0, 9);
        batch.push('c', 0, 9);
        assert_eq!(step(&mut batch), (Duration::from_millis(13), "abc".into()));
    }

    #[test]
    fn a_long_prompt_stalls_the_others_for_one_step() {
        let mut batch = Batch::new(COST);
        batch.push('a', 0, 9);
        step(&mut batch);
        batch.push('b', 500, 9);
        assert_eq!(step(&mut batch), (Duration::from_millis(1_012), "ab".into()));
        assert_eq!(step(&mut batch), (Duration::from_millis(12), "ab".into()));
    }

    #[test]
    fn no_more_than_max_num_seqs_run_and_the_line_is_first_in_first_out() {
        let mut batch = Batch::new(COST);
        for owner in ['a', 'b', 'c', 'd', 'e'] {
            batch.push(owner, 0, 2);
        }
        assert_eq!(step(&mut batch).1, "abc");
        assert_eq!((batch.running(), batch.waiting()), (3, 2));
        assert_eq!(step(&mut batch).1, "abc");
        assert_eq!(step(&mut batch).1, "de");
        assert_eq!(step(&mut batch).1, "de");
        assert_eq!(batch.begin(), None);
    }

    #[test]
    fn whoever_left_gives_the_place_to_the_next() {
        let mut batch = Batch::new(COST);
        for owner in ['a', 'b', 'c', 'd', 'e'] {
            batch.push(owner, 0, 9);
        }
        step(&mut batch);
        batch.retain(|&owner| owner != 'b' && owner != 'd');
        assert_eq!(step(&mut batch).1, "ace");
    }

    #[test]
    fn every_answer_has_exactly_its_length() {
        let mut batch = Batch::new(COST);
        batch.push('a', 0, 3);
        let mut tokens = Vec::new();
        while batch.begin().is_some() {
            batch.finish(|_, token| tokens.push((token.index, token.last)));
        }
        assert_eq!(tokens, [(0, false), (1, false), (2, true)]);
    }
}
