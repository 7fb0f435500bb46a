//! A scenario: servers, targets, traffic, and what is promised of it; and how it is played.

use super::figures::{Figures, Round};
use super::promise::Promise;
use super::segment::{Segment, send};
use super::stage::{Door, Setting};
use super::target::Target;
use crate::load::outcome::Outcome;
use crate::report::validity::{lateness_warning, objections};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// From so many short requests on a P99 is more than the slowest of them.
const ENOUGH: usize = 100;

/// What is played.
pub struct Scenario {
    /// One word.
    pub name: &'static str,
    /// What it is, in sentences, its numbers among them.
    pub about: Vec<String>,
    pub setting: Setting,
    /// In the order of reports.
    pub targets: Vec<Target>,
    /// Every target has a turn in every round; who begins changes from round to round.
    pub rounds: usize,
    /// About how long a turn lasts, for who waits.
    pub turn: Duration,
    /// What a target is sent in a round.
    pub segment: Box<dyn Fn(Target, usize) -> Segment + Send + Sync>,
    /// How often queues are looked at.
    pub look_every: Duration,
    /// The target that all figures are held against.
    pub reference: Target,
    /// What throughput is held against.
    pub without: Target,
    /// What is promised, given the figures.
    pub promises: fn(&Results) -> Vec<Promise>,
}

/// What came of it.
pub struct Results {
    pub name: &'static str,
    pub about: Vec<String>,
    pub policy: String,
    pub reference: Target,
    pub without: Target,
    pub targets: Vec<Played>,
    pub promises: fn(&Results) -> Vec<Promise>,
}

/// One target's part.
pub struct Played {
    pub target: Target,
    pub rounds: Vec<Round>,
    pub figures: Figures,
}

impl Scenario {
    /// About how long all of it lasts.
    pub fn lasts(&self) -> Duration {
        self.turn * u32::try_from(self.rounds * self.targets.len()).unwrap_or(u32::MAX)
    }

    /// The same with only these targets, or all where there are none. An error where it has none of them.
    pub fn only(mut self, wanted: &[Target]) -> Result<Scenario> {
        let all = self.targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ");
        if !wanted.is_empty() {
            self.targets.retain(|target| wanted.contains(target));
        }
        ensure!(!self.targets.is_empty(), "{} has none of the targets named; it has {all}", self.name);
        Ok(self)
    }

    /// Plays all rounds. Targets take turns segment by segment, so that what changes on the machine meanwhile changes
    /// for all of them.
    pub async fn play(self) -> Result<Results> {
        let mut doors = Vec::new();
        for &target in &self.targets {
            let door = Door::open(target, &self.setting).await;
            doors.push((door.with_context(|| target.name())?, Vec::new()));
        }
        let rounds = 0..self.rounds;
        let turns = rounds.flat_map(|round| self.targets.iter().map(move |&target| (target, round)));
        let all = turns.map(|(target, round)| (self.segment)(target, round).plan.len() as u64).sum();
        let bar = progress(self.name, all)?;
        for round in 0..self.rounds {
            for place in 0..doors.len() {
                let at = (round + place) % doors.len();
                let (door, rounds) = &mut doors[at];
                let target = door.target;
                bar.set_message(format!("round {} of {}, {}", round + 1, self.rounds, target.name()));
                let segment = (self.segment)(target, round);
                let begun = Instant::now();
                let played = send(&segment, door, &self.setting.servers, self.look_every, &bar).await;
                rounds.push(played.with_context(|| format!("{}, {}", self.name, target.name()))?);
                if bar.is_hidden() {
                    let seconds = begun.elapsed().as_secs();
                    println!("  round {} of {}, {}: {seconds} s", round + 1, self.rounds, target.name());
                }
            }
        }
        bar.finish_and_clear();
        let played = |(door, rounds): (Door, Vec<Round>)| Played {
            target: door.target,
            figures: Figures::of(&rounds),
            rounds,
        };
        Ok(Results {
            name: self.name,
            about: self.about,
            policy: self.setting.policy,
            reference: self.reference,
            without: self.without,
            targets: doors.into_iter().map(played).collect(),
            promises: self.promises,
        })
    }
}

impl Results {
    /// The reasons why the runs with the filter cannot be compared with the one without; none when all is well.
    pub fn objections(&self) -> Vec<String> {
        let Some(without) = self.targets.iter().find(|played| played.target == self.without) else {
            return Vec::new();
        };
        let filtered = self.targets.iter().filter(|played| played.target.filters());
        let objections = filtered.flat_map(|with| objections(&without.outcomes(), &with.outcomes()));
        objections.map(|objection| format!("{}: {objection}", self.name)).collect()
    }

    /// What takes from the worth of the figures: a machine that could not keep the pace, too few requests for a P99.
    pub fn warnings(&self) -> Vec<String> {
        let late = |played: &Played| {
            let warning = lateness_warning(&played.outcomes())?;
            Some(format!("{}: {warning}", played.target.name()))
        };
        let mut warnings: Vec<String> = self.targets.iter().filter_map(late).collect();
        match self.targets.iter().map(|played| played.figures.short.sent).min() {
            Some(fewest) if fewest < ENOUGH => {
                warnings.push(format!("a P99 of {fewest} short requests is the slowest of them"));
            }
            _ => {}
        }
        warnings
    }

    /// Whether there were enough requests for a P99.
    pub fn enough(&self) -> bool {
        self.targets.iter().all(|played| played.figures.short.sent >= ENOUGH)
    }

    /// The figures of a target, if it took part.
    pub fn figures(&self, target: Target) -> Option<&Figures> {
        self.targets.iter().find(|played| played.target == target).map(|played| &played.figures)
    }
}

impl Played {
    fn outcomes(&self) -> Vec<Outcome> {
        self.rounds.iter().flat_map(|round| round.outcomes.iter().cloned()).collect()
    }
}

/// A bar that counts ended requests; hidden where there is no terminal.
fn progress(name: &'static str, requests: u64) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix:>10} {bar:30} {pos}/{len} answered, {elapsed}, {msg}")?;
    let bar = ProgressBar::new(requests).with_style(style).with_prefix(name);
    bar.enable_steady_tick(Duration::from_millis(250));
    Ok(bar)
}
