//! All policies, each tried on the same requests.

use super::ask::Ask;
use super::grid::{Candidate, Point};
use super::run::{Setting, run};
use super::score::{Score, Slo};
use anyhow::{Context, Result};
use indicatif::{ParallelProgressIterator, ProgressBar};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use sluice::core::body::dialect;
use sluice::core::engine::Engine;
use sluice::core::policy::Policy;
use sluice::core::units::{ClassId, Time};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// What every policy is tried on.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The requests.
    pub asks: &'a [Ask],
    /// Server, workers and distances; its policy is replaced by each that is tried.
    pub setting: Setting<'a>,
    /// When a request counts as served well.
    pub slo: Slo,
}

impl Trial<'_> {
    /// Tries one policy, or none.
    ///
    /// # Errors
    /// As [`run`].
    pub fn score(&self, policy: Option<&Policy>) -> Result<Score> {
        let outcomes = run(self.asks, &Setting { policy, ..self.setting })?;
        Ok(Score::of(&outcomes, self.asks.iter().map(|ask| ask.output_tokens), self.slo))
    }

    /// Tries all, on as many cores as there are; `bar` counts them.
    ///
    /// # Errors
    /// As [`run`].
    pub fn scores(&self, candidates: &[Candidate], bar: &ProgressBar) -> Result<Vec<Score>> {
        let scores = candidates.par_iter().progress_with(bar.clone());
        scores.map(|candidate| self.score(Some(&candidate.policy))).collect()
    }

    /// Those that are not the same as an earlier one for these requests: with other bounds, yet sorting every request
    /// into the same class.
    ///
    /// # Errors
    /// Where the filter lacks the dialect that the requests are written in.
    pub fn distinct(&self, candidates: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let mut sorted: HashMap<(u64, u64), Vec<Option<ClassId>>> = HashMap::new();
        let mut seen = HashSet::new();
        let mut distinct = Vec::new();
        for candidate in candidates {
            let Some(point) = &candidate.point else {
                distinct.push(candidate);
                continue;
            };
            let bounds = (point.prompt_chars, point.max_tokens);
            let classes = match sorted.entry(bounds) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(classes(self.asks, &candidate.policy)?),
            };
            let rest = Point { prompt_chars: 0, max_tokens: 0, ..point.clone() };
            if seen.insert((classes.clone(), format!("{rest:?}"))) {
                distinct.push(candidate);
            }
        }
        Ok(distinct)
    }
}

/// The class that the filter gives each request; `None` where it refuses to read it.
fn classes(asks: &[Ask], policy: &Policy) -> Result<Vec<Option<ClassId>>> {
    let dialect =
        dialect::named("chat", policy.backend).context("the filter does not know the chat dialect")?;
    let engine = Engine::new(Rc::new(policy.clone()), Time::default());
    Ok(asks.iter().map(|ask| engine.judge(dialect, &ask.body()).ok().map(|judged| judged.class)).collect())
}
