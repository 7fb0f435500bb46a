//! A page: one HTML file that needs nothing beside it, to be opened anywhere and kept.

use super::draw::{COLORS, GRID, INK};
use anyhow::{Context, Result};
use plotters::style::RGBColor;
use std::fmt::{Display, Write as _};
use std::fs;
use std::path::Path;

/// A page in the making; what is added stands in the order of adding. All text is escaped.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Page {
        Page { title: title.into(), body: String::new() }
    }

    /// A heading over what follows.
    pub fn heading(self, text: &str) -> Page {
        self.add(format_args!("<h2>{}</h2>", escaped(text)))
    }

    /// A paragraph.
    pub fn text(self, text: &str) -> Page {
        self.add(format_args!("<p>{}</p>", escaped(text)))
    }

    /// A picture, as [`Chart::svg`](super::chart::Chart::svg) makes it, with a line that says what to see in it.
    pub fn picture(self, svg: &str, caption: &str) -> Page {
        self.add(format_args!(
            "<figure><div class=\"wide\">{svg}</div><figcaption>{}</figcaption></figure>",
            escaped(caption)
        ))
    }

    /// A table: columns' names, then rows. A column of numbers, some of which may be missing, is set to the right with
    /// its name.
    pub fn table<Cell: AsRef<str>>(
        self,
        head: impl IntoIterator<Item = impl AsRef<str>>,
        rows: impl IntoIterator<Item = impl IntoIterator<Item = Cell>>,
    ) -> Page {
        let rows: Vec<Vec<Cell>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
        let class = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(AsRef::as_ref);
            let mut there = cells.filter(|cell| !["", "-", "none"].contains(cell)).peekable();
            if there.peek().is_some() && there.all(is_number) { " class=\"number\"" } else { "" }
        };
        let mut table = String::from("<div class=\"wide\"><table><thead><tr>");
        for (column, name) in head.into_iter().enumerate() {
            table += &format!("<th{}>{}</th>", class(column), escaped(name.as_ref()));
        }
        table += "</tr></thead><tbody>\n";
        for row in &rows {
            table += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                table += &format!("<td{}>{}</td>", class(column), escaped(cell.as_ref()));
            }
            table += "</tr>\n";
        }
        self.add(format_args!("{table}</tbody></table></div>"))
    }

    /// Commands, configurations, records: as they are, line by line.
    pub fn code(self, text: &str) -> Page {
        self.add(format_args!("<pre><code>{}</code></pre>", escaped(text)))
    }

    /// The whole file.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let style = format!("{STYLE}{}", dark());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{style}</style>\n\
             </head>\n<body>\n<h1>{title}</h1>\n{}</body>\n</html>\n",
            self.body
        )
    }

    /// Writes the file, and the directories to it.
    ///
    /// # Errors
    ///
    /// With the path, when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        directory
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(path, self.html()))
            .with_context(|| format!("cannot write the page {}", path.display()))
    }

    fn add(mut self, part: impl Display) -> Page {
        // Writing into a string does not fail.
        let _ = writeln!(self.body, "{part}");
        self
    }
}

/// Wide things scroll by themselves, so that a narrow screen neither shrinks their text nor scrolls the page; a shadow at
/// an edge says that there is more behind it.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #ffffff; --shadow: #00000040; }
body { max-width: 68rem; margin: 0 auto; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif;
  color: #222222; background: var(--page); }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2rem; }
p { max-width: 60rem; white-space: pre-line; }
figure { margin: 1.5rem 0; } figcaption { font-size: 0.95rem; opacity: 0.85; }
.wide { overflow-x: auto; margin: 1rem 0; background: linear-gradient(90deg, var(--page) 30%, transparent) 0 / 3rem 100% local,
  linear-gradient(270deg, var(--page) 30%, transparent) 100% / 3rem 100% local,
  linear-gradient(90deg, var(--shadow), transparent) 0 / 1rem 100%,
  linear-gradient(270deg, var(--shadow), transparent) 100% / 1rem 100%;
  background-repeat: no-repeat; }
svg { display: block; min-width: 40rem; width: 100%; height: auto; }
svg text { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; }
table { border-collapse: collapse; font-size: 0.95rem; }
th, td { padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; border-bottom: 1px solid #dddddd; }
td:first-child { white-space: nowrap; }
th.number, td.number { text-align: right; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { overflow-x: auto; padding: 0.75rem; background: #f4f4f4; font-size: 0.85rem; }
";

/// What a dark page draws with instead, in the order of ink, grid and series.
const DARK: [&str; 2 + COLORS.len()] = [
    "#e4e4e4", "#3c3c3c", "#3ba3e0", "#f08030", "#20bd90", "#dd93bd", "#f0b030", "#7cc8f4", "#a0a0a0",
    "#9a86f0", "#d84a80", "#c8c858",
];

fn dark() -> String {
    let mut style = String::from(
        "@media (prefers-color-scheme: dark) {\n:root { --page: #181818; --shadow: #000000c0; }\nbody { color: #e4e4e4; }\nsvg text { stroke: #181818; }\n\
         th, td { border-color: #3c3c3c; }\npre { background: #242424; }\n",
    );
    for (RGBColor(red, green, blue), dark) in [INK, GRID].into_iter().chain(COLORS).zip(DARK) {
        let light = format!("#{red:02X}{green:02X}{blue:02X}");
        for attribute in ["fill", "stroke"] {
            style += &format!("svg [{attribute}=\"{light}\"] {{ {attribute}: {dark}; }}\n");
        }
    }
    style + "}\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Whether a cell is a number, with its unit or without.
fn is_number(cell: &str) -> bool {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let digits = number.trim_start_matches(['-', '+', '<', '>', '~']);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.chars().all(|char| char.is_ascii_digit() || matches!(char, '.' | ','))
        && !unit.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::Chart;

    fn page() -> Page {
        let svg = Chart::new("a chart").line("line", [(0.0, 1.0), (1.0, 2.0)]).svg().unwrap();
        Page::new("Short & long")
            .heading("a <heading>")
            .text("some text")
            .picture(&svg, "what to see")
            .table(["class", "P99, s"], [["short", "0.47"], ["long", "9.1"]])
            .code("rig load --url 'http://…' <in >out")
    }

    #[test]
    fn all_that_was_added_is_there_and_escaped() {
        let html = page().html();
        for part in [
            "<title>Short &amp; long</title>",
            "<h2>a &lt;heading&gt;</h2>",
            "<p>some text</p>",
            "<svg ",
            "what to see",
            "<th class=\"number\">P99, s</th>",
            "<td>short</td><td class=\"number\">0.47</td>",
            "&lt;in &gt;out",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn only_columns_of_nothing_but_numbers_are_set_as_numbers() {
        for number in ["0.47", "12,500", "-3", "~0.4 s", "100.0 %", "1.07 x", "601471 bytes"] {
            assert!(is_number(number), "{number}");
        }
        for text in [
            "2026-11-30T10:52:28Z",
            "2 cores of a CPU",
            "100.00 % of 336 (failed: none)",
            "2000 chars, 128 tokens",
            "none",
            "9e55/1.40.0",
        ] {
            assert!(!is_number(text), "{text}");
        }
        let numbers = |cells: &[&str]| {
            let html = Page::new("").table(["fact"], cells.iter().map(|cell| [*cell])).html();
            html.matches("class=\"number\"").count()
        };
        assert_eq!(numbers(&["601471 bytes", "none", "-", ""]), 5);
        assert_eq!(numbers(&["601471 bytes", "9e55/1.40.0"]), 0);
        assert_eq!(numbers(&["none", ""]), 0);
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        let html = page().html();
        let address_of_the_format = "http://www.w3.org/2000/svg";
        for fetching in ["src=", "href=", "url(", "@import"] {
            assert!(!html.contains(fetching), "{fetching}");
        }
        assert!(!html.replace(address_of_the_format, "").contains("http://www"));
    }

    #[test]
    fn every_color_of_a_chart_has_a_dark_twin() {
        let style = dark();
        let svg = Chart::new("x").line("a", [(0.0, 1.0), (1.0, 1.0)]).svg().unwrap();
        for color in svg.split('#').skip(1).map(|rest| &rest[..6]) {
            assert!(style.contains(color), "{color}");
        }
    }

    #[test]
    fn a_page_makes_its_directories_and_names_what_it_cannot_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/page.html");
        page().write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), page().html());
        let error = page().write(&path.join("below-a-file.html")).unwrap_err();
        assert!(format!("{error:#}").contains("below-a-file.html"), "{error:#}");
    }
}
