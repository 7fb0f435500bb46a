//! An axis: how values become places on a chart, and which of them bear a label.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// About as many labels as an axis bears without crowding.
const LABELS: f64 = 7.0;

/// An axis as asked for; [`Chart`](super::chart::Chart) fits it to the values it has to show.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) label: String,
    scale: Scale,
    from: Option<f64>,
    to: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Scale {
    Linear,
    Log,
    Groups(Vec<String>),
}

impl Axis {
    /// Equal steps, from 0 unless values lie below it. The label says what is shown and in which unit.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, from: None, to: None }
    }

    /// Equal ratios. Values that are not above 0 have no place here and are drawn at its lower end.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label) }
    }

    /// Named groups of bars, side by side.
    pub fn groups(names: impl IntoIterator<Item = impl Into<String>>) -> Axis {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Axis { scale: Scale::Groups(names), ..Axis::linear("") }
    }

    /// Begins here; lower values are drawn at this end. On a log axis only what is above 0 counts.
    pub fn from(self, value: f64) -> Axis {
        Axis { from: Some(value), ..self }
    }

    /// Ends here; higher values are drawn at this end.
    pub fn to(self, value: f64) -> Axis {
        Axis { to: Some(value), ..self }
    }

    /// How many groups of bars there is room for; none on an axis of numbers.
    pub(super) fn group_count(&self) -> Option<usize> {
        match &self.scale {
            Scale::Groups(names) => Some(names.len()),
            _ => None,
        }
    }

    /// The axis with ends and labels for these values; those that are not finite do not count.
    pub(super) fn fit(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let values = values.filter(|value| value.is_finite());
        let (from, to, ticks) = match &self.scale {
            Scale::Linear => self.fit_linear(values),
            Scale::Log => self.fit_log(values),
            Scale::Groups(names) => {
                let count = names.len().max(1);
                (0.0, count as f64, (0..names.len()).map(|group| group as f64 + 0.5).collect())
            }
        };
        let ticks = ticks.into_iter().filter(|tick| (from..=to).contains(tick)).collect();
        Fitted { scale: self.scale.clone(), from, to, ticks }
    }

    fn fit_linear(&self, values: impl Iterator<Item = f64>) -> (f64, f64, Vec<f64>) {
        let (least, most) = ends(values).unwrap_or((0.0, 1.0));
        let (from, to) = (self.from.unwrap_or(least.min(0.0)), self.to.unwrap_or(most.max(0.0)));
        // A span of nothing, or the wrong way round, still needs a length.
        let to = if to > from { to } else { from + from.abs().max(1.0) };
        let step = step(to - from);
        let (first, last) = ((from / step).floor() as i64, (to / step - 1e-9).ceil() as i64);
        let ticks = (first..=last).map(|tick| tick as f64 * step).collect();
        (self.from.unwrap_or(first as f64 * step), self.to.unwrap_or(last as f64 * step).max(to), ticks)
    }

    fn fit_log(&self, values: impl Iterator<Item = f64>) -> (f64, f64, Vec<f64>) {
        let above_zero = |value: &f64| *value >= f64::MIN_POSITIVE;
        let (least, most) = ends(values.filter(above_zero)).unwrap_or((1.0, 10.0));
        let (least, most) =
            (self.from.filter(above_zero).unwrap_or(least), self.to.filter(above_zero).unwrap_or(most));
        let most = if most > least { most } else { least * 10.0 };
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        let decades = last - first;
        let steps = |stride: usize, digits: &'static [f64]| {
            let decades = (first..=last).step_by(stride);
            decades.flat_map(move |decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)))
        };
        // The next round values outwards, so that nothing sticks to the frame.
        let round = || steps(1, &[1.0, 2.0, 5.0]);
        let from = round().filter(|&tick| tick <= least * 1.000_001).last().unwrap_or(least);
        let to = round().find(|&tick| tick >= most * 0.999_999).unwrap_or(most);
        let stride = usize::try_from(decades / 10).unwrap_or(0) + 1;
        let ticks = steps(stride, if decades <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] }).collect();
        (self.from.filter(above_zero).unwrap_or(from), self.to.filter(above_zero).unwrap_or(to), ticks)
    }
}

/// An axis with its ends and labels.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    scale: Scale,
    pub(super) from: f64,
    pub(super) to: f64,
    ticks: Vec<f64>,
}

impl Fitted {
    /// The label at a tick.
    pub(super) fn name(&self, tick: f64) -> String {
        match &self.scale {
            Scale::Groups(names) => names.get(tick as usize).cloned().unwrap_or_default(),
            _ => number(tick),
        }
    }

    /// The length of the longest label, in characters.
    pub(super) fn longest_name(&self) -> usize {
        self.ticks.iter().map(|&tick| self.name(tick).chars().count()).max().unwrap_or(0)
    }
}

impl Ranged for Fitted {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        let value = value.clamp(self.from, self.to);
        let part = match self.scale {
            Scale::Log => (value / self.from).ln() / (self.to / self.from).ln(),
            _ => (value - self.from) / (self.to - self.from),
        };
        begin + (f64::from(end - begin) * part).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Fitted {
    fn format_ext(&self, tick: &f64) -> String {
        self.name(*tick)
    }
}

/// A number as people write it: `12,500`, `0.25`, `1e-7`.
pub fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 || value.abs() >= 1e12 {
        return format!("{value:e}");
    }
    let text = format!("{:.4}", value.abs());
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let part = part.trim_end_matches('0');
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{part}")
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((least, most)) => Some((least.min(value), most.max(value))),
    })
}

/// 1, 2 or 5 times a power of ten, so that a span has about [`LABELS`] of them.
fn step(span: f64) -> f64 {
    let rough = span / LABELS;
    let decade = 10_f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * decade >= rough).unwrap_or(10.0);
    digit * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let fitted = axis.fit(values.iter().copied());
        fitted.ticks.iter().map(|&tick| fitted.name(tick)).collect()
    }

    #[test]
    fn labels_are_round_and_span_the_values() {
        assert_eq!(labels(&Axis::linear("s"), &[0.1, 0.93]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&Axis::linear("n").from(100.0), &[130.0, 148.0]).first().unwrap(), "100");
        assert_eq!(
            labels(&Axis::log("s"), &[0.03, 4.0]),
            ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"]
        );
        assert_eq!(labels(&Axis::log("s"), &[1.0, 1e6]).len(), 7);
        assert_eq!(labels(&Axis::groups(["short", "long"]), &[]), ["short", "long"]);
    }

    #[test]
    fn odd_values_leave_a_usable_axis() {
        for axis in
            [Axis::linear(""), Axis::log(""), Axis::log("").from(-1.0), Axis::linear("").from(5.0).to(5.0)]
        {
            for values in
                [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[7.0, 7.0], &[-3.0], &[1e-300, 1e300]]
            {
                let fitted = axis.fit(values.iter().copied());
                assert!(fitted.to > fitted.from, "{axis:?} {values:?} {fitted:?}");
                assert!(fitted.ticks.len() < 100, "{axis:?} {values:?}");
                assert!((0..=100).contains(&fitted.map(&values.first().copied().unwrap_or(0.0), (0, 100))));
            }
        }
    }

    #[test]
    fn a_log_axis_places_by_ratio() {
        let axis = Axis::log("s").from(0.1).to(10.0).fit(std::iter::empty());
        assert_eq!(
            [0.0, 0.1, 1.0, 10.0, 11.0].map(|value| axis.map(&value, (400, 0))),
            [400, 400, 200, 0, 0]
        );
    }

    #[test]
    fn numbers_are_written_for_people() {
        for (value, text) in [
            (0.0, "0"),
            (12_500.0, "12,500"),
            (-0.25, "-0.25"),
            (0.1 + 0.2, "0.3"),
            (1e-7, "1e-7"),
            (1e6, "1,000,000"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
