//! Charts as SVG: lines, steps, bars, scattered points with a front.

use super::axis::Axis;
use super::draw;
use anyhow::{Result, ensure};

/// A chart in the making: axes, then series in the order of their colours, then notes; [`svg`](Chart::svg) draws it.
///
/// Points that are not finite leave a gap, so that a figure that could not be measured is seen to be missing.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    pub(super) notes: Vec<Note>,
}

/// Points under one name, which stands in the legend.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    pub kind: Kind,
    pub points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Line,
    Step,
    Bars,
    Scatter,
    Front,
}

/// Something said at a place of the chart.
#[derive(Clone, Debug)]
pub(super) enum Note {
    Y(f64, String),
    Point(f64, f64, String),
}

impl Chart {
    /// A chart with linear axes and nothing in it.
    pub fn new(title: impl Into<String>) -> Chart {
        let (x, y) = (Axis::linear(""), Axis::linear(""));
        Chart { title: title.into(), x, y, series: Vec::new(), notes: Vec::new() }
    }

    /// The axis along the foot.
    pub fn x(self, axis: Axis) -> Chart {
        Chart { x: axis, ..self }
    }

    /// The axis up the side.
    pub fn y(self, axis: Axis) -> Chart {
        Chart { y: axis, ..self }
    }

    /// Points joined by a line, with marks where there are few of them.
    pub fn line(self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Chart {
        self.series(name, Kind::Line, points.into_iter().collect())
    }

    /// A value that stays until the next point: queue lengths over time, distributions.
    pub fn step(self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Chart {
        self.series(name, Kind::Step, points.into_iter().collect())
    }

    /// One bar a group of [`Axis::groups`], beside those of the other series.
    pub fn bars(self, name: impl Into<String>, heights: impl IntoIterator<Item = f64>) -> Chart {
        let points = heights.into_iter().enumerate().map(|(group, height)| (group as f64, height)).collect();
        self.series(name, Kind::Bars, points)
    }

    /// Single points.
    pub fn scatter(self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Chart {
        self.series(name, Kind::Scatter, points.into_iter().collect())
    }

    /// Points that stand out, joined in the order of their x: the best of a scatter.
    pub fn front(self, name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Chart {
        let mut points: Vec<_> = points.into_iter().collect();
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        self.series(name, Kind::Front, points)
    }

    /// A horizontal line with a text, at a value of the y axis.
    pub fn at_y(self, y: f64, text: impl Into<String>) -> Chart {
        self.note(Note::Y(y, text.into()))
    }

    /// A ring with a text, at a point.
    pub fn at_point(self, (x, y): (f64, f64), text: impl Into<String>) -> Chart {
        self.note(Note::Point(x, y, text.into()))
    }

    /// The chart as an `<svg>` element of its own.
    ///
    /// # Errors
    ///
    /// When bars do not fit the groups of the x axis, or the library that draws fails.
    pub fn svg(&self) -> Result<String> {
        for series in self.series.iter().filter(|series| series.kind == Kind::Bars) {
            ensure!(
                self.x.group_count() == Some(series.points.len()),
                "chart {:?}: the bars {:?} are {}, but the x axis has {} groups",
                self.title,
                series.name,
                series.points.len(),
                self.x.group_count().unwrap_or(0),
            );
        }
        draw::svg(self)
    }

    fn series(mut self, name: impl Into<String>, kind: Kind, points: Vec<(f64, f64)>) -> Chart {
        self.series.push(Series { name: name.into(), kind, points });
        self
    }

    fn note(mut self, note: Note) -> Chart {
        self.notes.push(note);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_asked_for_is_in_the_picture() {
        let svg = Chart::new("Waiting & running")
            .x(Axis::linear("time, s"))
            .y(Axis::log("requests"))
            .line("a line", [(0.0, 1.0), (1.0, 10.0)])
            .step("a step", [(0.0, 2.0), (f64::NAN, 3.0), (2.0, 4.0)])
            .scatter("policies", [(1.0, 2.0)])
            .front("the front", [(2.0, 1.0), (1.0, 3.0)])
            .at_y(5.0, "SLO")
            .at_point((1.0, 2.0), "chosen")
            .svg()
            .unwrap();
        for text in [
            "Waiting &amp; running",
            "time, s",
            "requests",
            "a line",
            "a step",
            "policies",
            "the front",
            "SLO",
            "chosen",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
    }

    #[test]
    fn bars_have_a_group_each() {
        let chart = Chart::new("P99").x(Axis::groups(["short", "long"]));
        let svg = chart.clone().bars("direct", [1.0, 2.0]).bars("none", [f64::NAN, 1.0]).svg().unwrap();
        assert!(svg.contains("short") && svg.contains("long") && !svg.contains("NaN"));
        let error = chart.bars("direct", [1.0]).svg().unwrap_err().to_string();
        assert!(error.contains("direct") && error.contains("2 groups"), "{error}");
    }

    #[test]
    fn an_empty_chart_is_a_chart() {
        assert!(Chart::new("nothing").svg().unwrap().contains("nothing"));
    }
}
