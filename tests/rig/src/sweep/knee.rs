//! Where on a curve more throughput begins to cost too much, and what an objective still allows.

/// What one batch size comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trade {
    /// Of whatever is counted, a second.
    pub throughput: f64,
    /// In seconds.
    pub p99: f64,
}

/// The knee of a curve of throughput (across) and P99 (up): the place of the point that lies farthest below the chord,
/// both axes scaled to 0..1, as in Satopaa et al., "Finding a Kneedle in a Haystack" (ICDCS Workshops 2011).
///
/// The curve consists of the points that no other one beats in both; the chord goes from the one with the least
/// throughput to the one with the most. None where fewer than three are left, or where the curve bends nowhere.
pub fn knee(points: &[Trade]) -> Option<usize> {
    let beaten = |point: &Trade| {
        let beats =
            |other: &Trade| other.throughput >= point.throughput && other.p99 <= point.p99 && other != point;
        points.iter().any(beats)
    };
    let mut curve: Vec<usize> = (0..points.len()).filter(|&place| !beaten(&points[place])).collect();
    curve.sort_by(|&one, &other| points[one].throughput.total_cmp(&points[other].throughput));
    let (first, last) = (points[*curve.first()?], points[*curve.last()?]);
    let (width, height) = (last.throughput - first.throughput, last.p99 - first.p99);
    if curve.len() < 3 || width <= 0.0 || height <= 0.0 {
        return None;
    }
    let below = |place: usize| {
        let point = points[place];
        (point.throughput - first.throughput) / width - (point.p99 - first.p99) / height
    };
    let knee = curve.into_iter().max_by(|&one, &other| below(one).total_cmp(&below(other)))?;
    (below(knee) > 0.0).then_some(knee)
}

/// The place of the last point whose P99 is at most `slo` seconds; none where all are slower.
pub fn largest_within(points: &[Trade], slo: f64) -> Option<usize> {
    points.iter().rposition(|point| point.p99 <= slo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<Trade> {
        points.iter().map(|&(throughput, p99)| Trade { throughput, p99 }).collect()
    }

    #[test]
    fn the_knee_is_where_the_curve_turns_up() {
        let points = curve(&[(1.0, 1.0), (5.0, 1.5), (9.0, 2.0), (9.5, 8.0), (10.0, 20.0)]);
        assert_eq!(knee(&points), Some(2));
        assert_eq!(largest_within(&points, 8.0), Some(3));
        assert_eq!(largest_within(&points, 0.5), None);
    }

    #[test]
    fn what_is_beaten_in_both_is_not_on_the_curve() {
        // The first point is slower than those with more throughput.
        let points = curve(&[(1.0, 9.0), (2.0, 1.0), (6.0, 1.2), (7.0, 4.0)]);
        assert_eq!(knee(&points), Some(2));
    }

    #[test]
    fn a_straight_or_a_short_curve_has_no_knee() {
        assert_eq!(knee(&curve(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)])), None);
        assert_eq!(knee(&curve(&[(1.0, 1.0), (2.0, 2.0)])), None);
        assert_eq!(knee(&[]), None);
    }
}
