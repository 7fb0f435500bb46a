//! The sweep over `max_num_seqs`.

use super::knee::{Trade, knee, largest_within};
use super::{Options, digits, p99, poisson};
use crate::advise::ask::Ask;
use crate::advise::bound::capacity;
use crate::load::trace::{Arrival, Trace};
use crate::load::traffic::Class;
use crate::sim::job::Job;
use crate::sim::replay::{Offer, replay};
use crate::sim::spec::Spec;
use anyhow::{Context as _, Result, ensure};
use indicatif::ProgressBar;
use std::time::Duration;

/// The table's columns.
pub const HEAD: [&str; 9] = [
    "max_num_seqs",
    "at most, answers/s",
    "times single",
    "load",
    "tokens/s",
    "first token P99, s",
    "per token P99, ms",
    "whole answer P99, s",
    "preemptions",
];

/// All runs.
pub struct Sweep {
    /// What the answers are like.
    pub about: String,
    /// By load, then by batch size.
    pub runs: Vec<Vec<Run>>,
}

/// One batch size under one load.
pub struct Run {
    pub max_num_seqs: usize,
    /// Answers a second that this batch size can do at most.
    pub capacity: f64,
    /// The load, as a share of that.
    pub share: f64,
    /// Output tokens a second that this load has.
    pub tokens_per_second: f64,
    pub first_token_p99: f64,
    /// Of an answer's average time per token after the first.
    pub per_token_p99: f64,
    pub whole_p99: f64,
    pub preemptions: u64,
}

/// Runs `lengths` through the server with every batch size under every load.
pub fn sweep(spec: Spec, lengths: &Trace, options: &Options, bar: &ProgressBar) -> Result<Sweep> {
    let fits = |arrival: &&Arrival| {
        arrival.prompt_tokens.saturating_add(arrival.output_tokens) <= spec.max_model_len
    };
    let kept: Vec<Arrival> = lengths.arrivals().iter().filter(fits).copied().collect();
    ensure!(
        !kept.is_empty(),
        "no request of the trace fits into {} tokens (max_model_len)",
        spec.max_model_len
    );
    let mean =
        |of: fn(&Arrival) -> u32| kept.iter().map(|one| f64::from(of(one))).sum::<f64>() / kept.len() as f64;
    let output = mean(|arrival| arrival.output_tokens);
    let about = format!(
        "{} answers of {output:.0} tokens to prompts of {:.0} on average; {} were too long for the model and left out",
        kept.len(),
        mean(|arrival| arrival.prompt_tokens),
        lengths.arrivals().len() - kept.len(),
    );
    let asks: Vec<Ask> = kept.iter().map(ask).collect();
    let mut runs: Vec<Vec<Run>> = options.shares.iter().map(|_| Vec::new()).collect();
    for &max_num_seqs in &options.sizes {
        let spec = Spec { max_num_seqs, ..spec };
        spec.check().with_context(|| format!("max_num_seqs {max_num_seqs}"))?;
        let capacity = capacity(spec, &asks)?;
        for (runs, &share) in runs.iter_mut().zip(&options.shares) {
            let moments = poisson(capacity * share, kept.len(), options.seed)?;
            let plan: Vec<Offer> = kept.iter().zip(moments).map(|(arrival, at)| offer(arrival, at)).collect();
            runs.push(run(spec, &plan, capacity, share, output)?);
            bar.inc(1);
        }
    }
    Ok(Sweep { about, runs })
}

fn run(spec: Spec, plan: &[Offer], capacity: f64, share: f64, output: f64) -> Result<Run> {
    let done = replay(spec, plan)?;
    let ended = || plan.iter().zip(&done.timings);
    let per_token = ended().map(|(offer, timing)| {
        (timing.end - timing.first_token) / offer.job.output_tokens.saturating_sub(1).max(1)
    });
    Ok(Run {
        max_num_seqs: spec.max_num_seqs,
        capacity,
        share,
        tokens_per_second: capacity * share * output,
        first_token_p99: p99(ended().map(|(offer, timing)| timing.first_token - offer.at)),
        per_token_p99: p99(per_token),
        whole_p99: p99(ended().map(|(offer, timing)| timing.end - offer.at)),
        preemptions: done.stats.preemptions,
    })
}

fn ask(arrival: &Arrival) -> Ask {
    Ask {
        at: arrival.at,
        class: Class::Short,
        prompt_tokens: arrival.prompt_tokens,
        prompt_chars: 0,
        output_tokens: arrival.output_tokens,
        max_tokens: None,
    }
}

fn offer(arrival: &Arrival, at: Duration) -> Offer {
    let job =
        Job { prompt_tokens: arrival.prompt_tokens, output_tokens: arrival.output_tokens, ..Job::default() };
    Offer { at, job }
}

impl Sweep {
    /// The runs under the highest load.
    pub fn highest(&self) -> &[Run] {
        self.runs.last().map_or(&[], Vec::as_slice)
    }

    /// The place among those of the knee between tokens a second and time per token.
    pub fn knee(&self) -> Option<usize> {
        knee(&self.highest().iter().map(|run| trade(run, run.per_token_p99)).collect::<Vec<_>>())
    }

    /// The place among those of the largest batch whose whole answers have a P99 of `slo` seconds at most.
    pub fn largest_within(&self, slo: f64) -> Option<usize> {
        largest_within(&self.highest().iter().map(|run| trade(run, run.whole_p99)).collect::<Vec<_>>(), slo)
    }

    /// The table, by batch size and then by load.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let single = self.runs.first().and_then(|runs| runs.first()).map_or(f64::NAN, |run| run.capacity);
        let sizes = 0..self.highest().len();
        let by_size = sizes.flat_map(|size| self.runs.iter().filter_map(move |runs| runs.get(size)));
        by_size.map(|run| run.row(single)).collect()
    }

    /// What the sweep says about the choice.
    pub fn verdict(&self, options: &Options) -> String {
        let share = options.highest_share() * 100.0;
        let size = |place: usize| self.highest()[place].max_num_seqs;
        let knee = match self.knee() {
            Some(place) => {
                format!("the knee of tokens a second against time per token is at {}", size(place))
            }
            None => "there is no knee".to_owned(),
        };
        let slo = options.slo;
        let within = match self.largest_within(slo) {
            Some(place) => {
                format!("the largest with a P99 of whole answers within {slo} s is {}", size(place))
            }
            None => format!("none has a P99 of whole answers within {slo} s"),
        };
        format!("At {share:.0} % of what each batch size can do, {knee}; {within}.")
    }
}

fn trade(run: &Run, p99: f64) -> Trade {
    Trade { throughput: run.tokens_per_second, p99 }
}

impl Run {
    fn row(&self, single: f64) -> Vec<String> {
        vec![
            self.max_num_seqs.to_string(),
            digits(self.capacity),
            digits(self.capacity / single),
            format!("{:.0} %", self.share * 100.0),
            digits(self.tokens_per_second),
            digits(self.first_token_p99),
            digits(self.per_token_p99 * 1e3),
            digits(self.whole_p99),
            self.preemptions.to_string(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::sim::preset::Preset;

    fn sweep_of(flags: &str, spec: Spec) -> (Sweep, Options) {
        let options = options(flags);
        let lengths = options.lengths().unwrap();
        (sweep(spec, &lengths, &options, &ProgressBar::hidden()).unwrap(), options)
    }

    #[test]
    fn larger_batches_do_more_and_their_tokens_take_longer() {
        let (sweep, options) =
            sweep_of("rig --requests 400 --sizes 1,4,16,64 --shares 0.5,0.8", Preset::A100.spec());
        let runs = sweep.highest();
        assert!(runs.windows(2).all(|two| two[0].capacity < two[1].capacity));
        assert!(runs.windows(2).all(|two| two[0].per_token_p99 < two[1].per_token_p99));
        assert_eq!((sweep.rows().len(), sweep.rows()[0].len()), (8, HEAD.len()));
        assert!(sweep.verdict(&options).starts_with("At 80 %"));
        assert_eq!(sweep.largest_within(0.001), None);
        assert_eq!(sweep.largest_within(1e9), Some(3));
    }

    #[test]
    fn what_the_model_cannot_take_is_left_out_and_said() {
        let spec = Spec { max_model_len: 1_000, ..Preset::A40.spec() };
        let (sweep, _) = sweep_of("rig --requests 400 --sizes 8 --shares 0.5", spec);
        assert!(!sweep.about.contains(" 0 were too long"), "{}", sweep.about);
        let none = Spec { max_model_len: 2, ..spec };
        let options = options("rig --requests 400 --sizes 8");
        let lengths = options.lengths().unwrap();
        let error = sweep_error(none, &lengths, &options);
        assert!(error.contains("no request of the trace fits"), "{error}");
    }

    fn sweep_error(spec: Spec, lengths: &Trace, options: &Options) -> String {
        match sweep(spec, lengths, options, &ProgressBar::hidden()) {
            Ok(_) => "no error".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}
