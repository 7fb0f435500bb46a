//! The steps of the bare module (`benches/bare`): the filter's calls of Envoy's host without the filter's own work.

use super::target::Target;

/// Calls for one purpose, made besides those of all steps before.
#[derive(Debug)]
pub struct Step {
    /// What is done.
    pub name: &'static str,
    /// The word that makes the bare module do it.
    word: &'static str,
    /// Calls a request, where its body comes in one piece.
    pub calls: &'static [(&'static str, u32)],
    /// In which part of the requests.
    pub share: f64,
}

/// In the order in which they add up.
pub const STEPS: [Step; 12] = [
    step("every callback returns at once", "", &[]),
    step("headers held until the body is whole", "hold", &[]),
    step("body read", "read", &[("proxy_get_buffer_bytes", 1)]),
    step("class set, another route found", "class", &[("proxy_replace_header_map_value", 1)]),
    step("that route may retry", RETRIES, &[]),
    step("headers read, both ways", "headers", &[("proxy_get_header_map_pairs", 2)]),
    step("clock read", "clock", &[("clock_time_get", 5)]),
    step("response headers added", "respond", &[("proxy_add_header_map_value", 5)]),
    step("filter state set", "properties", &[("proxy_set_property", 6)]),
    step("metrics fed", "metrics", &[("proxy_increment_metric", 3), ("proxy_record_metric", 4)]),
    step("shared data written", "shared", &[("proxy_set_shared_data", 2)]),
    Step {
        share: 0.5,
        ..step(
            "every other body edited",
            "edit",
            &[("proxy_set_buffer_bytes", 1), ("proxy_replace_header_map_value", 1)],
        )
    },
];
/// No word of the module's: Envoy is configured otherwise.
const RETRIES: &str = "retries";

const fn step(name: &'static str, word: &'static str, calls: &'static [(&'static str, u32)]) -> Step {
    Step { name, word, calls, share: 1.0 }
}

impl Step {
    /// Calls a request, on average, where each is made so often.
    pub fn calls_a_request(&self, times: u32) -> f64 {
        let calls = self.calls.iter().map(|(_, calls)| calls).sum::<u32>();
        f64::from(calls * self.repeats(times)) * self.share
    }

    /// An edit is made once: a second one would change what is sent on.
    fn repeats(&self, times: u32) -> u32 {
        if self.calls.is_empty() || self.share < 1.0 { 1 } else { times }
    }
}

/// The bare module at each step.
pub(super) fn targets(times: u32) -> impl Iterator<Item = Target> {
    (0..STEPS.len()).map(move |step| Target::Bare { step, times })
}

/// What the module is told to do at the step of this number: the calls of each step so often, where they can be
/// repeated.
pub fn words(number: usize, times: u32) -> String {
    let steps = STEPS.iter().take(number + 1).filter(|step| !step.word.is_empty() && step.word != RETRIES);
    let words = steps.map(|step| match step.repeats(times) {
        1 => step.word.to_owned(),
        repeats => format!("{}={repeats}", step.word),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether the routes of classes retry at the step of this number, as the shipped ones do.
pub fn has_retries(number: usize) -> bool {
    STEPS.iter().take(number + 1).any(|step| step.word == RETRIES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const DOCS: &str = include_str!("../../../../docs/overhead.md");

    /// The docs list the filter's calls, which a test of the filter counts.
    #[test]
    fn all_steps_together_make_the_filters_calls() {
        let listed: BTreeMap<&str, u32> = DOCS
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| `")?.split(" | ");
                Some((cells.next()?.strip_suffix('`')?, cells.next()?.parse().unwrap()))
            })
            .collect();
        let mut made = BTreeMap::new();
        for (name, calls) in STEPS.iter().filter(|step| step.share == 1.0).flat_map(|step| step.calls) {
            *made.entry(*name).or_insert(0) += calls;
        }
        assert_eq!(made, listed);
    }

    #[test]
    fn steps_add_up() {
        assert_eq!(words(0, 1), "");
        assert_eq!(words(3, 1), "hold read class");
        assert_eq!(words(4, 1), words(3, 1));
        assert_eq!(words(3, 10), "hold read=10 class=10");
        assert!(words(STEPS.len() - 1, 10).ends_with("shared=10 edit"));
        assert!(!has_retries(3) && has_retries(4) && has_retries(STEPS.len() - 1));
    }
}
