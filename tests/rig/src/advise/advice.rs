//! What came of it all: every policy with its figures, the front, the one to take.

use super::front::{front, recommended};
use super::grid::{Candidate, Point};
use super::score::Score;
use serde::Serialize;

/// The advice, in the shape of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// What was asked for, as on the command line.
    pub command: String,
    /// The requests in words.
    pub traffic: String,
    /// What they ask for, as a share of what the server can do.
    pub load: Option<f64>,
    /// Envoy without the filter.
    pub without: Score,
    /// All policies, those with the lowest P99 of short first tokens first.
    pub policies: Vec<Tried>,
    /// The name of the one to take, and what it does not keep.
    pub recommended: String,
    /// What of the conditions the recommended one does not keep; empty where it keeps all.
    pub not_kept: Vec<String>,
}

/// A policy that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// What it is called.
    pub name: String,
    /// Its place in the grid; none for one that was given as a file.
    pub point: Option<Point>,
    /// Whether no other policy has both a lower P99 of short first tokens and one of whole long answers.
    pub front: bool,
    /// What it came to.
    pub score: Score,
    /// The filter's configuration, as text.
    pub configuration: String,
}

impl Advice {
    /// Puts the figures in order. `candidates` and `scores` belong together, one by one.
    pub fn new(
        command: String,
        traffic: String,
        load: Option<f64>,
        without: Score,
        candidates: Vec<Candidate>,
        scores: Vec<Score>,
    ) -> Advice {
        let chosen = recommended(&scores, &without);
        let recommended = chosen
            .as_ref()
            .and_then(|(place, _)| candidates.get(*place))
            .map_or(String::new(), |one| one.name.clone());
        let fronts = front(&scores);
        let tried = candidates.into_iter().zip(scores).zip(fronts);
        let mut policies: Vec<Tried> = tried
            .map(|((candidate, score), front)| Tried {
                name: candidate.name,
                point: candidate.point,
                front,
                score,
                configuration: candidate.text,
            })
            .collect();
        policies.sort_by(|one, other| {
            one.score.short.first_token.p99.total_cmp(&other.score.short.first_token.p99)
        });
        let not_kept = chosen.map(|(_, missed)| missed).unwrap_or_default();
        Advice { command, traffic, load, without, policies, recommended, not_kept }
    }

    /// The policy to take.
    pub fn chosen(&self) -> Option<&Tried> {
        self.policies.iter().find(|tried| tried.name == self.recommended)
    }

    /// The chosen policy as the text to write into the filter's configuration.
    pub fn configuration(&self) -> &str {
        self.chosen().map_or("", |tried| &tried.configuration)
    }
}
