//! Whether the two runs may be compared at all.

use crate::load::outcome::{Outcome, Served, latest};
use std::time::Duration;

/// More failures than this part in the run without the filter, and its figures are not about waiting.
const MOST_FAILED_WITHOUT: f64 = 0.01;
/// A generator that sends later than this says more about the machine than about the proxy.
const MOST_LATE: Duration = Duration::from_millis(250);

/// The reasons why the comparison means nothing; none when it is good.
pub fn objections(without: &[Outcome], with: &[Outcome]) -> Vec<String> {
    let mut objections = Vec::new();
    let failed = without.iter().filter(|outcome| outcome.result.is_err()).count();
    if failed as f64 > MOST_FAILED_WITHOUT * without.len() as f64 {
        objections.push(format!("without the filter {failed} of {} requests failed", without.len()));
    }
    let filtered = served(without).filter(|(_, served)| served.tagged.is_some()).count();
    if filtered > 0 {
        objections.push(format!("in the run without the filter {filtered} answers bear its header"));
    }
    let strays =
        served(with).filter(|(outcome, served)| served.tagged.as_deref() != Some(outcome.class.name()));
    match strays.count() {
        0 => {}
        strays => objections
            .push(format!("with the filter {strays} answers do not bear the class they were sent as")),
    }
    let changed = served(with).filter(|(_, served)| served.limit_action.as_deref() != Some("kept")).count();
    if changed > 0 {
        objections.push(format!("with the filter {changed} answers had their output limit changed"));
    }
    objections
}

/// What to say when the generator itself could not keep the pace.
pub fn lateness_warning(outcomes: &[Outcome]) -> Option<String> {
    let late = Some(latest(outcomes)).filter(|&late| late > MOST_LATE)?;
    Some(format!("this machine was busy: a request was sent {late:.0?} late (which counts as its latency)"))
}

fn served(outcomes: &[Outcome]) -> impl Iterator<Item = (&Outcome, &Served)> {
    outcomes.iter().filter_map(|outcome| outcome.result.as_ref().ok().map(|served| (outcome, served)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::Failure;
    use crate::load::traffic::Class;

    fn outcome(result: Result<Served, Failure>) -> Outcome {
        Outcome {
            class: Class::Short,
            at: Duration::ZERO,
            late: Duration::ZERO,
            attempts: 1,
            took: Duration::ZERO,
            result,
        }
    }

    fn answer(tagged: Option<&str>, limit_action: Option<&str>) -> Outcome {
        outcome(Ok(Served {
            first_token: Duration::ZERO,
            tokens: 1,
            gaps: Vec::new(),
            tagged: tagged.map(str::to_owned),
            limit_action: limit_action.map(str::to_owned),
        }))
    }

    #[test]
    fn like_runs_may_be_compared_whatever_the_filter_refused() {
        let with =
            [answer(Some("short"), Some("kept")), outcome(Err(Failure::Status(429, "queue_full".into())))];
        assert!(objections(&[answer(None, None)], &with).is_empty());
    }

    #[test]
    fn each_unlikeness_is_named() {
        let good = (answer(None, None), answer(Some("short"), Some("kept")));
        for (without, with) in [
            (outcome(Err(Failure::Broken)), good.1.clone()),
            (answer(Some("short"), None), good.1),
            (good.0.clone(), answer(None, Some("kept"))),
            (good.0.clone(), answer(Some("long"), Some("kept"))),
            (good.0, answer(Some("short"), Some("clamped"))),
        ] {
            assert_eq!(objections(&[without], &[with]).len(), 1);
        }
    }
}
