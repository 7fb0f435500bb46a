//! A chart's strokes. Colours stand as attributes, which the page's style sheet turns round where it is dark.

use super::axis::{Fitted, number};
use super::chart::{Chart, Kind, Note, Series};
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Display;

/// Text, axes and notes.
pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);
/// Okabe and Ito's colours, which stay distinct for colour-blind readers (Color Universal Design, 2008), without the
/// yellow, which white swallows; then three of Paul Tol's muted ones, so that no two targets of a comparison share one.
/// Marks differ, too, and in another rhythm.
pub(super) const COLORS: [RGBColor; 10] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x7F, 0x7F, 0x7F),
    RGBColor(0x33, 0x22, 0x88),
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0x99, 0x99, 0x33),
];

/// All in pixels of a picture that is shown at its own size or smaller.
const WIDTH: u32 = 840;
const PLOT_HEIGHT: u32 = 360;
const MARGIN: i32 = 14;
const TITLE: i32 = 17;
const TEXT: i32 = 14;
const ROW: i32 = 22;
const SWATCH: i32 = 22;
/// Radius of the ring around a point that is spoken of.
const RING: i32 = 9;
/// A line of more points than this bears marks only here and there, to be told apart by.
const MOST_MARKS: usize = 40;
const SPARSE_MARKS: usize = 8;
/// The part of a group's width that its bars take.
const BARS: f64 = 0.8;
/// Bars narrower than this have no room for their height in figures.
const LEAST_FIGURE: i32 = 26;

type Place = (i32, i32);
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) fn svg(chart: &Chart) -> Result<String> {
    let legend = legend(&chart.series);
    let rows = legend.last().map_or(0, |(_, (_, row))| row + 1);
    // Title, legend, the name of the y axis.
    let head = MARGIN + TITLE + 8 + rows * ROW + ROW;
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, PLOT_HEIGHT + head as u32)).into_drawing_area();
    draw(chart, &legend, head, &root).map_err(|error| anyhow!("chart {:?}: {error}", chart.title))?;
    root.present().map_err(|error| anyhow!("chart {:?}: {error}", chart.title))?;
    drop(root);
    Ok(svg.trim_start().to_owned())
}

type Drawn = Result<(), Box<dyn Display>>;

fn drawn<T, E: Display + 'static>(result: Result<T, E>) -> Result<T, Box<dyn Display>> {
    result.map_err(|error| Box::new(error) as Box<dyn Display>)
}

fn draw(chart: &Chart, legend: &[(usize, Place)], head: i32, root: &Area<'_>) -> Drawn {
    let (mut xs, mut ys) = (Vec::new(), Vec::new());
    for (x, y) in chart.series.iter().flat_map(|series| &series.points) {
        xs.push(*x);
        ys.push(*y);
    }
    for note in &chart.notes {
        match note {
            Note::Y(y, _) => ys.push(*y),
            Note::Point(x, y, _) => {
                xs.push(*x);
                ys.push(*y);
            }
        }
    }
    let (x, y) = (chart.x.fit(xs.into_iter()), chart.y.fit(ys.into_iter()));

    text(root, &chart.title, (MARGIN, MARGIN), HPos::Left, TITLE, true)?;
    for (series, (left, row)) in legend {
        let place = (*left, MARGIN + TITLE + 8 + row * ROW);
        swatch(root, &chart.series[*series], *series, (place.0, place.1 + TEXT / 2 + 1))?;
        text(root, &chart.series[*series].name, (place.0 + SWATCH + 6, place.1), HPos::Left, TEXT, false)?;
    }
    text(root, &chart.y.label, (MARGIN, head - ROW + 2), HPos::Left, TEXT, false)?;

    let labels = y.longest_name().max(2) as i32 * 8 + 12;
    let mut context = drawn(
        ChartBuilder::on(&root.margin(head + 4, MARGIN, MARGIN, MARGIN + 12))
            .x_label_area_size(if chart.x.label.is_empty() { 28 } else { 48 })
            .y_label_area_size(labels)
            .build_cartesian_2d(x.clone(), y.clone()),
    )?;
    let style = |size: f64| TextStyle::from(("sans-serif", size * 1.24).into_font()).color(&INK);
    // Names of many groups are set smaller, so that they do not touch.
    let room = (WIDTH as i32 - 2 * MARGIN - labels) as f64 / chart.x.group_count().unwrap_or(1) as f64;
    let fits = room / (0.54 * x.longest_name().max(1) as f64);
    let small = if chart.x.group_count().is_some() { fits.clamp(8.0, TEXT.into()) } else { TEXT.into() };
    let mut mesh = context.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(GRID).axis_style(INK).label_style(style(TEXT.into()));
    mesh.x_label_style(style(small)).axis_desc_style(style(TEXT.into()));
    let (name_x, name_y) = (|tick: &f64| x.name(*tick), |tick: &f64| y.name(*tick));
    mesh.x_desc(chart.x.label.clone()).x_label_formatter(&name_x).y_label_formatter(&name_y);
    if chart.x.group_count().is_some() {
        mesh.disable_x_mesh();
    }
    drawn(mesh.draw())?;

    let plot = context.plotting_area();
    let at = |x: f64, y: f64| plot.map_coordinate(&(x, y));
    for (place, series) in chart.series.iter().enumerate() {
        match series.kind {
            Kind::Bars => {
                let beside = chart.series.iter().filter(|series| series.kind == Kind::Bars).count();
                bars(root, series, place, beside, &y, at)?;
            }
            _ => points(root, series, place, at)?,
        }
    }
    let mut labels = Labels::default();
    chart.notes.iter().try_for_each(|note| self::note(root, note, &x, &mut labels, at))
}

/// Where each series' entry begins: pixels from the left, and its row. Entries flow like words.
fn legend(series: &[Series]) -> Vec<(usize, Place)> {
    // One series alone is what the title speaks of, unless it has a name of its own.
    let (mut left, mut row) = (MARGIN, 0);
    let mut places = Vec::new();
    for (index, series) in series.iter().enumerate().filter(|(_, series)| !series.name.is_empty()) {
        let width = SWATCH + 6 + series.name.chars().count() as i32 * 8 + 18;
        if left + width > WIDTH as i32 - MARGIN && left > MARGIN {
            (left, row) = (MARGIN, row + 1);
        }
        places.push((index, (left, row)));
        left += width;
    }
    places
}

fn swatch(root: &Area<'_>, series: &Series, place: usize, (left, middle): Place) -> Drawn {
    let color = color(place);
    match series.kind {
        Kind::Bars => {
            let corners = [(left, middle - 7), (left + SWATCH, middle + 7)];
            drawn(root.draw(&Rectangle::new(corners, color.filled())))
        }
        Kind::Scatter => mark(root, place, (left + SWATCH / 2, middle), color.mix(0.6)),
        Kind::Line | Kind::Step | Kind::Front => {
            drawn(
                root.draw(&PathElement::new(
                    [(left, middle), (left + SWATCH, middle)],
                    color.stroke_width(3),
                )),
            )?;
            match series.kind {
                Kind::Step => Ok(()),
                _ => mark(root, place, (left + SWATCH / 2, middle), color.mix(1.0)),
            }
        }
    }
}

fn points(root: &Area<'_>, series: &Series, place: usize, at: impl Fn(f64, f64) -> Place) -> Drawn {
    let color = color(place);
    let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    if series.kind != Kind::Scatter {
        // A point that is not finite ends a line; the next one begins another.
        for run in series.points.split(|point| !finite(point)) {
            let mut path: Vec<Place> = Vec::with_capacity(run.len());
            for &(x, y) in run {
                let to = at(x, y);
                if let (Kind::Step, Some(&(_, height))) = (series.kind, path.last()) {
                    path.push((to.0, height));
                }
                path.push(to);
            }
            path.dedup();
            drawn(root.draw(&PathElement::new(path, color.stroke_width(2))))?;
        }
    }
    let stride = match series.kind {
        Kind::Step => return Ok(()),
        Kind::Line if series.points.len() > MOST_MARKS => series.points.len() / SPARSE_MARKS,
        _ => 1,
    };
    let strength = if series.kind == Kind::Scatter { 0.6 } else { 1.0 };
    // Each line at places of its own, so that those that lie upon each other are both seen.
    let marked = series.points.iter().skip(stride * (place % COLORS.len()) / COLORS.len()).step_by(stride);
    for (x, y) in marked.filter(|point| finite(point)) {
        mark(root, place, at(*x, *y), color.mix(strength))?;
    }
    Ok(())
}

fn bars(
    root: &Area<'_>,
    series: &Series,
    place: usize,
    beside: usize,
    y: &Fitted,
    at: impl Fn(f64, f64) -> Place,
) -> Drawn {
    let width = BARS / beside as f64;
    for &(group, height) in series.points.iter().filter(|(_, height)| height.is_finite()) {
        let left = group + (1.0 - BARS) / 2.0 + width * place as f64;
        let foot = if (y.from..=y.to).contains(&0.0) { 0.0 } else { y.from };
        let (from, to) = (at(left, foot), at(left + width, height));
        let (right, top) = (to.0 - 1, from.1.min(to.1));
        drawn(root.draw(&Rectangle::new([(from.0, top), (right, from.1.max(to.1))], color(place).filled())))?;
        if right - from.0 >= LEAST_FIGURE {
            let middle = ((from.0 + right) / 2, top - TEXT - 1);
            text(root, &short_number(height), middle, HPos::Center, TEXT - 2, false)?;
        }
    }
    Ok(())
}

fn note(
    root: &Area<'_>,
    note: &Note,
    x: &Fitted,
    labels: &mut Labels,
    at: impl Fn(f64, f64) -> Place,
) -> Drawn {
    let line = |from, to| DashedPathElement::new([from, to], 6, 4, INK.stroke_width(1));
    match note {
        Note::Y(value, said) if value.is_finite() => {
            let (left, right) = (at(x.from, *value), at(x.to, *value));
            drawn(root.draw(&line(left, right)))?;
            labels.draw(root, said, (right.0, right.1 + TEXT / 2 - 2), 2)
        }
        Note::Point(x, y, said) if x.is_finite() && y.is_finite() => {
            let place = at(*x, *y);
            drawn(root.draw(&Circle::new(place, RING, INK.stroke_width(2))))?;
            labels.draw(root, said, place, RING + 4)
        }
        _ => Ok(()),
    }
}

/// What the notes of a chart say, of which place, and where: none upon another.
#[derive(Debug, Default)]
struct Labels(Vec<(String, Place, [Place; 2])>);

impl Labels {
    /// Draws a text beside a place, `away` from it: the first free of right and left, above it and below.
    fn draw(&mut self, root: &Area<'_>, said: &str, place: Place, away: i32) -> Drawn {
        let touches = |other: &Place| (other.0 - place.0).abs().max((other.1 - place.1).abs()) < 2 * RING;
        if self.0.iter().any(|(text, of, _)| text == said && touches(of)) {
            // One text is enough for both rings.
            return Ok(());
        }
        let width = said.chars().count() as i32 * 7;
        let rows = [-1, 1, 0, -2, 2, -3, 3].map(|row| place.1 - TEXT / 2 + row * (TEXT + 1));
        let free =
            rows.iter().flat_map(|&top| [place.0 + away, place.0 - away - width].map(|left| (left, top)));
        let free =
            free.map(|(left, top)| [(left, top), (left + width, top + TEXT)]).find(|label| self.free(*label));
        let label = free.unwrap_or([(place.0 + away, rows[0]), (place.0 + away + width, rows[0] + TEXT)]);
        let (left, right) = (label[0].0, label[1].0);
        let (edge, anchor) = if left >= place.0 { (left, HPos::Left) } else { (right, HPos::Right) };
        self.0.push((said.to_owned(), place, label));
        text(root, said, (edge, label[0].1), anchor, TEXT, false)
    }

    /// Whether a text would be within the picture and upon no other.
    fn free(&self, [from, to]: [Place; 2]) -> bool {
        let apart = |(_, _, [first, last]): &(String, Place, [Place; 2])| {
            last.0 < from.0 || to.0 < first.0 || last.1 < from.1 || to.1 < first.1
        };
        from.0 > MARGIN && to.0 < WIDTH as i32 - MARGIN && self.0.iter().all(apart)
    }
}

/// A series' mark: its shape tells it apart where its colour does not.
fn mark(root: &Area<'_>, place: usize, (x, y): Place, color: RGBAColor) -> Drawn {
    let shape: Vec<Place> = match place % 4 {
        0 => return drawn(root.draw(&Circle::new((x, y), 4, color.filled()))),
        1 => vec![(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)],
        2 => vec![(x, y - 5), (x + 5, y + 4), (x - 5, y + 4)],
        _ => vec![(x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)],
    };
    drawn(root.draw(&Polygon::new(shape, color)))
}

fn text(root: &Area<'_>, said: &str, place: Place, anchor: HPos, size: i32, bold: bool) -> Drawn {
    // The backend divides sizes by 1.24.
    let font = ("sans-serif", f64::from(size) * 1.24).into_font();
    let font = if bold { font.style(FontStyle::Bold) } else { font };
    let style = TextStyle::from(font).color(&INK).pos(Pos::new(anchor, VPos::Top));
    drawn(root.draw(&Text::new(said.to_owned(), place, style)))
}

fn color(place: usize) -> RGBColor {
    COLORS[place % COLORS.len()]
}

/// Three digits that count; two where more would not fit over a bar.
fn short_number(value: f64) -> String {
    let least = if value.abs() < 0.01 { -3.0 } else { -1.0 };
    let digits = 2 - value.abs().max(1e-3).log10().floor().clamp(least, 2.0) as i32;
    let scale = 10_f64.powi(digits);
    number((value * scale).round() / scale)
}
