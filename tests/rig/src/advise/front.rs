//! The best of many: which policies nothing else beats, and which of them to take.

use super::score::Score;

/// What a policy has to keep, beside a low P99, to be recommended. More refused than that, and the P99 is the clients' patience.
const LEAST_TOKENS: f64 = 0.95;
const MOST_REFUSED: f64 = 0.01;
/// Short P99s that differ by less are as good as each other: the long ones' decides.
const AS_GOOD: f64 = 1.1;

/// For each of `scores` whether it stands on the Pareto front: no other has both a lower P99 of short first tokens and
/// a lower P99 of whole long answers, or one of them lower and the other the same. Of several that are equal in both,
/// the first stands for all.
pub fn front(scores: &[Score]) -> Vec<bool> {
    let axes: Vec<(f64, f64)> = scores.iter().map(axes).collect();
    let beats = |(x, y): &(f64, f64), (a, b): &(f64, f64)| x <= a && y <= b && (x < a || y < b);
    let stands = |(place, own): (usize, &(f64, f64))| {
        !axes.iter().any(|other| beats(other, own)) && !axes[..place].contains(own)
    };
    axes.iter().enumerate().map(stands).collect()
}

/// The two axes of the front, in seconds.
pub fn axes(score: &Score) -> (f64, f64) {
    (score.short.first_token.p99, score.long.whole.p99)
}

/// The policy to take: its place in `scores`, and what it does not keep.
///
/// Of those that serve 99 % of the short and of the long ones, cut no answer off and make 0.95 of the tokens a
/// second that were made without the filter, the lowest P99 of short first tokens and all within a tenth above it are
/// taken, and of these the one with the lowest P99 of whole long answers. Where none keeps all of that, the one that
/// misses the fewest, and among those the one that serves most requests well.
pub fn recommended(scores: &[Score], without: &Score) -> Option<(usize, Vec<String>)> {
    let missed: Vec<Vec<String>> = scores.iter().map(|score| missing(score, without)).collect();
    let kept: Vec<usize> = (0..scores.len()).filter(|&place| missed[place].is_empty()).collect();
    let by = |one: f64, other: f64| one.total_cmp(&other);
    if kept.is_empty() {
        let place = (0..scores.len()).min_by(|&one, &other| {
            missed[one].len().cmp(&missed[other].len()).then(by(scores[other].good, scores[one].good))
        })?;
        return Some((place, missed[place].clone()));
    }
    let short = |place: usize| axes(&scores[place]).0;
    let best = kept.iter().map(|&place| short(place)).min_by(|&one, &other| by(one, other))?;
    let as_good = kept.into_iter().filter(|&place| short(place) <= best * AS_GOOD);
    let place = as_good.min_by(|&one, &other| {
        let ((short, long), (other_short, other_long)) = (axes(&scores[one]), axes(&scores[other]));
        by(long, other_long).then(by(short, other_short))
    })?;
    Some((place, Vec::new()))
}

fn missing(score: &Score, without: &Score) -> Vec<String> {
    let tokens = score.tokens_per_second / without.tokens_per_second.max(f64::MIN_POSITIVE);
    let (short, long) = (score.short.refused, score.long.refused);
    [
        (tokens < LEAST_TOKENS).then(|| {
            format!("it makes {tokens:.2} of the tokens a second without the filter ({LEAST_TOKENS} asked)")
        }),
        (short > MOST_REFUSED).then(|| format!("{:.1} % of the short ones are not served", short * 100.0)),
        (long > MOST_REFUSED).then(|| format!("{:.1} % of the long ones are not served", long * 100.0)),
        (score.cut > 0).then(|| format!("{} answers are cut off by its output limits", score.cut)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::score::{ClassScore, Quantiles};
    use super::*;

    fn score(short: f64, long: f64, tokens_per_second: f64) -> Score {
        let class = |p99| ClassScore {
            sent: 10,
            refused: 0.0,
            first_token: Quantiles { p50: 0.0, p99 },
            whole: Quantiles { p50: 0.0, p99 },
        };
        Score { short: class(short), long: class(long), good: 1.0, tokens_per_second, cut: 0 }
    }

    #[test]
    fn the_front_is_what_nothing_beats() {
        let scores = [
            score(1.0, 9.0, 1.0),
            score(2.0, 5.0, 1.0),
            score(2.0, 6.0, 1.0),
            score(3.0, 5.0, 1.0),
            score(4.0, 4.0, 1.0),
            score(4.0, 4.0, 1.0),
        ];
        assert_eq!(front(&scores), [true, true, false, false, true, false]);
        assert!(front(&[]).is_empty());
    }

    #[test]
    fn among_equals_for_the_short_ones_the_long_ones_decide() {
        let without = score(9.0, 7.0, 100.0);
        let scores =
            [score(1.0, 9.0, 96.0), score(1.09, 8.0, 97.0), score(1.2, 7.0, 99.0), score(0.5, 9.0, 90.0)];
        assert_eq!(recommended(&scores, &without), Some((1, Vec::new())));
        assert_eq!(recommended(&[], &without), None);
    }

    #[test]
    fn what_is_not_kept_is_said() {
        let without = score(9.0, 7.0, 100.0);
        let refusing = |refused, good| {
            let mut score = score(1.0, 9.0, 90.0);
            (score.long.refused, score.good) = (refused, good);
            score
        };
        let (place, missed) =
            recommended(&[refusing(0.2, 0.9), refusing(0.0, 0.7), refusing(0.0, 0.8)], &without).unwrap();
        assert_eq!(place, 2);
        assert_eq!(missed, ["it makes 0.90 of the tokens a second without the filter (0.95 asked)"]);
    }
}
