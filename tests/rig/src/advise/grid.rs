//! The policies to try: every combination of what was listed, as configurations that the filter loads.

use anyhow::{Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use sluice::core::config;
use sluice::core::policy::Policy;

/// What may be tried of each figure of a policy. Where nothing is listed, what suits the server and the filter's own
/// defaults is.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "The grid: lists with commas, of which every combination is tried")]
pub struct Lists {
    /// Largest prompt of the short class, in characters [1000,2000,4000].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub prompt_chars: Vec<u64>,
    /// Largest output limit of the short class, in tokens [128,256,512].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub max_tokens: Vec<u64>,
    /// Slots of the pool that both classes share [the server's seats].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub pool: Vec<usize>,
    /// Most long ones in flight at once [sixteenths of the seats, from one quarter on].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub long_concurrency: Vec<usize>,
    /// Slots of the pool that long ones may not take [0]. With two classes it is another way to write a cap on them.
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub reserved: Vec<usize>,
    /// How many long ones may wait [64].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub long_queue: Vec<usize>,
    /// How long a long one may wait [30s].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub long_timeout: Vec<String>,
    /// How many short ones may wait [256].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub short_queue: Vec<usize>,
    /// How long a short one may wait [5s].
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub short_timeout: Vec<String>,
}

/// One policy's place in the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Largest prompt of the short class, in characters.
    pub prompt_chars: u64,
    /// Largest output limit of the short class, in tokens.
    pub max_tokens: u64,
    /// Slots that both classes share.
    pub pool: usize,
    /// Most long ones in flight at once.
    pub long_concurrency: usize,
    /// Slots that long ones may not take.
    pub reserved: usize,
    /// How the short ones wait: how many, and how long.
    pub short_queue: (usize, String),
    /// How the long ones wait.
    pub long_queue: (usize, String),
}

/// The bounds of a single request under every policy of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest prompt, in characters.
    pub prompt_chars: u64,
    /// Ceiling of the output limit, in tokens.
    pub max_tokens: u64,
}

/// A policy to try.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its place in the grid; `None` where it was given as a file.
    pub point: Option<Point>,
    /// How it is called in tables.
    pub name: String,
    /// What to write into the filter's configuration.
    pub text: String,
    /// The same, as the filter's own reader understands it.
    pub policy: Policy,
}

impl Candidate {
    /// Reads a configuration as the filter does.
    ///
    /// # Errors
    /// Every mistake that the filter's reader finds.
    pub fn read(name: String, text: &str) -> Result<Candidate> {
        let policy = config::parse(text.as_bytes())
            .map_err(|mistakes| anyhow::anyhow!("{name} is no policy that the filter loads:\n{mistakes}"))?;
        Ok(Candidate { point: None, name, text: text.to_owned(), policy })
    }

    fn at(point: Point, limits: Limits) -> Result<Candidate> {
        let candidate = Candidate::read(point.name(), &point.configuration(limits))?;
        Ok(Candidate { point: Some(point), ..candidate })
    }
}

impl Lists {
    /// All policies of the grid for a server with so many seats. What contradicts itself (more long ones than slots,
    /// say) is left out; so is what differs from an earlier one only in how the same cap on long ones is written.
    ///
    /// # Errors
    /// Where nothing is left, with the reasons.
    pub fn candidates(&self, seats: usize, limits: Limits) -> Result<Vec<Candidate>> {
        let (mut candidates, mut left_out): (Vec<Candidate>, Vec<String>) = (Vec::new(), Vec::new());
        for point in self.points(seats) {
            let same =
                |other: &Candidate| other.point.as_ref().is_some_and(|other| other.same_in_effect(&point));
            match Candidate::at(point.clone(), limits) {
                Ok(candidate) if !candidates.iter().any(same) => candidates.push(candidate),
                Ok(_) => {}
                Err(why) => left_out.push(format!("{why:#}")),
            }
        }
        match left_out.first() {
            Some(why) if candidates.is_empty() => {
                bail!(
                    "the grid is empty: all of its {} policies contradict themselves; the first: {why}",
                    left_out.len()
                )
            }
            _ => Ok(candidates),
        }
    }

    fn points(&self, seats: usize) -> Vec<Point> {
        let mut caps: Vec<usize> = (4..=16).map(|parts| (seats * parts / 16).max(1)).collect();
        caps.dedup();
        let mut points = Vec::new();
        for &prompt_chars in &or(&self.prompt_chars, [1_000, 2_000, 4_000]) {
            for &max_tokens in &or(&self.max_tokens, [128, 256, 512]) {
                for &pool in &or(&self.pool, [seats]) {
                    for &long_concurrency in &or(&self.long_concurrency, caps.iter().copied()) {
                        for &reserved in &or(&self.reserved, [0]) {
                            for short_queue in pairs(&self.short_queue, 256, &self.short_timeout, "5s") {
                                for long_queue in pairs(&self.long_queue, 64, &self.long_timeout, "30s") {
                                    let short_queue = short_queue.clone();
                                    points.push(Point {
                                        prompt_chars,
                                        max_tokens,
                                        pool,
                                        long_concurrency,
                                        reserved,
                                        short_queue,
                                        long_queue,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        points
    }
}

impl Point {
    /// The configuration of the filter that says this, laid out for people.
    fn configuration(&self, limits: Limits) -> String {
        let Point { prompt_chars, max_tokens, pool, long_concurrency, reserved, .. } = self;
        let queue = |(capacity, timeout): &(usize, String)| {
            format!("{{ \"capacity\": {capacity}, \"timeout\": {} }}", json!(timeout))
        };
        let (short_queue, long_queue) = (queue(&self.short_queue), queue(&self.long_queue));
        let reserved = if *reserved > 0 { format!("\"reserved\": {reserved}, ") } else { String::new() };
        format!(
            r#"{{
  "limits": {{ "prompt_chars": {}, "max_tokens": {} }},
  "pools": [{{ "name": "server", "concurrency": {pool} }}],
  "classes": [
    {{
      "name": "short",
      "at_most": {{ "prompt_chars": {prompt_chars}, "max_tokens": {max_tokens} }},
      "pool": "server", {reserved}"queue": {short_queue}
    }},
    {{
      "name": "long",
      "pool": "server", "concurrency": {long_concurrency}, "queue": {long_queue}
    }}
  ]
}}"#,
            limits.prompt_chars, limits.max_tokens
        )
    }

    fn name(&self) -> String {
        let Point { prompt_chars, max_tokens, pool, long_concurrency, reserved, .. } = self;
        let mut name =
            format!("{prompt_chars} chars, {max_tokens} tokens, {long_concurrency} of {pool} long");
        if *reserved > 0 {
            name += &format!(", {reserved} reserved");
        }
        for (class, (capacity, timeout), usual) in
            [("short", &self.short_queue, (256, "5s")), ("long", &self.long_queue, (64, "30s"))]
        {
            if (*capacity, timeout.as_str()) != usual {
                name += &format!(", {class} queue {capacity} for {timeout}");
            }
        }
        name
    }

    /// Long ones are kept to a number by their concurrency and by what is reserved from them alike.
    fn same_in_effect(&self, other: &Point) -> bool {
        let cap = |point: &Point| point.long_concurrency.min(point.pool.saturating_sub(point.reserved));
        let rest = |point: &Point| Point { long_concurrency: 0, reserved: 0, ..point.clone() };
        cap(self) == cap(other) && rest(self) == rest(other)
    }
}

impl Limits {
    /// What lets all of this through whole, and the filter's own defaults where those do.
    ///
    /// # Errors
    /// Where the filter has no limit as large.
    pub fn above(prompt_chars: u64, max_tokens: u64) -> Result<Limits> {
        let limits = Limits { prompt_chars: prompt_chars.max(100_000), max_tokens: max_tokens.max(1_024) };
        let most = u64::from(u32::MAX);
        ensure!(
            limits.prompt_chars <= most && limits.max_tokens <= most,
            "a request of {prompt_chars} characters that asks for {max_tokens} tokens is larger than any limit of the filter"
        );
        Ok(limits)
    }
}

/// What was listed, or else the usual.
fn or<T: Copy>(listed: &[T], usual: impl IntoIterator<Item = T>) -> Vec<T> {
    if listed.is_empty() { usual.into_iter().collect() } else { listed.to_vec() }
}

fn pairs(capacities: &[usize], capacity: usize, timeouts: &[String], timeout: &str) -> Vec<(usize, String)> {
    let usual = [timeout.to_owned()];
    let timeouts = if timeouts.is_empty() { &usual[..] } else { timeouts };
    let capacities = or(capacities, [capacity]);
    capacities
        .iter()
        .flat_map(|&capacity| timeouts.iter().map(move |timeout| (capacity, timeout.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { prompt_chars: 100_000, max_tokens: 1_024 };

    #[test]
    fn every_policy_of_the_usual_grids_is_one_that_the_filter_loads() {
        for seats in [1, 2, 4, 16, 256] {
            for candidate in Lists::default().candidates(seats, LIMITS).unwrap() {
                assert_eq!(config::parse(candidate.text.as_bytes()).unwrap(), candidate.policy);
                let point = candidate.point.unwrap();
                let [short, long] = &candidate.policy.classes[..] else { panic!("two classes") };
                assert_eq!(short.at_most.prompt_chars, Some(point.prompt_chars));
                assert_eq!(long.concurrency, Some(point.long_concurrency));
                assert_eq!(candidate.policy.pools[0].concurrency, Some(point.pool));
            }
        }
    }

    #[test]
    fn every_combination_is_tried_once() {
        let lists = Lists {
            prompt_chars: vec![500],
            max_tokens: vec![64, 128],
            pool: vec![8],
            long_concurrency: vec![4, 6, 9],
            reserved: vec![0, 2, 4],
            long_timeout: vec!["10s".into(), "1m".into()],
            ..Lists::default()
        };
        let candidates = lists.candidates(8, LIMITS).unwrap();
        // Caps of 4 and 6 are left: 9 are more than there are slots, and what is reserved says the same again.
        assert_eq!(candidates.len(), 2 * 2 * 2);
    }

    #[test]
    fn a_grid_of_contradictions_says_so() {
        let lists = Lists { pool: vec![4], long_concurrency: vec![9], ..Lists::default() };
        let error = lists.candidates(16, LIMITS).unwrap_err().to_string();
        assert!(error.contains("the grid is empty: all of its 9 policies"), "{error}");
        assert!(error.contains("classes[1].concurrency: 9 is over that of pool"), "{error}");
        let lists = Lists { long_timeout: vec!["soon".into()], ..Lists::default() };
        let error = lists.candidates(16, LIMITS).unwrap_err().to_string();
        assert!(error.contains("classes[1].queue.timeout"), "{error}");
    }

    #[test]
    fn a_policy_from_a_file_has_all_its_mistakes_named() {
        let error = Candidate::read("mine.json".into(), r#"{"limits": {"max_tokens": 0}, "clases": []}"#)
            .unwrap_err();
        let error = error.to_string();
        assert!(error.contains("mine.json is no policy"), "{error}");
        assert!(error.contains("limits.max_tokens") && error.contains("clases"), "{error}");
    }
}
