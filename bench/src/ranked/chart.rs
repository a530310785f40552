//! Charts as plain SVG: panels beside each other, each with lines or bars over the same categories.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::table::Table;

/// The size of a panel's area, in pixels.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 220.0;
/// Space around it: numbers to the left, a title above, categories and their label below.
const LEFT: f64 = 64.0;
const ABOVE: f64 = 54.0;
const BELOW: f64 = 48.0;
/// The height of a line of text.
const LINE: f64 = 16.0;
/// About as many numbers stand at the vertical axis.
const STEPS: f64 = 5.0;
/// Colours that people with common colour blindness can tell apart.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b"];

/// A chart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Chart {
    /// The file's name, without its ending.
    pub name: String,
    pub title: String,
    /// What the categories are.
    pub across: String,
    /// What the numbers are.
    pub up: String,
    /// Bars instead of lines.
    pub has_bars: bool,
    pub panels: Vec<Panel>,
}

/// One area of a chart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Panel {
    pub title: String,
    pub series: Vec<Series>,
}

/// Named numbers, each of a category.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    pub name: String,
    pub points: Vec<(String, f64)>,
}

impl Chart {
    /// Adds a number; panel, series and category are made where they are new.
    pub fn add(&mut self, panel: &str, series: &str, category: &str, number: f64) {
        let panel = found(
            &mut self.panels,
            |it| it.title == panel,
            || Panel { title: panel.to_owned(), series: Vec::new() },
        );
        let series = found(
            &mut panel.series,
            |it| it.name == series,
            || Series { name: series.to_owned(), points: Vec::new() },
        );
        series.points.push((category.to_owned(), number));
    }

    /// Writes the chart into a directory.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(&self.name).with_extension("svg");
        fs::write(&path, self.svg()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The categories: numbers by size, others in the order in which they come first.
    fn categories(&self) -> Vec<&str> {
        let mut categories = Vec::new();
        for (category, _) in self.series().flat_map(|series| &series.points) {
            if !categories.contains(&category.as_str()) {
                categories.push(category.as_str());
            }
        }
        let numbers: Result<Vec<usize>, _> = categories.iter().map(|it| it.parse()).collect();
        if numbers.is_ok() {
            categories.sort_by_key(|it| it.parse().unwrap_or(0_usize));
        }
        categories
    }

    /// The numbers as a table: a line for each series, a column for each category.
    pub fn table(&self) -> Table {
        let categories = self.categories();
        let mut table = Table::new(&[&["", ""], &categories[..], &[""]].concat());
        for panel in &self.panels {
            for series in &panel.series {
                let mut cells = vec![panel.title.clone(), series.name.clone()];
                cells.extend(categories.iter().map(|category| {
                    let number = series.points.iter().find(|point| point.0 == *category);
                    number.map_or(String::new(), |(_, number)| format!("{number:.2}"))
                }));
                table.row(cells);
            }
        }
        table
    }

    fn series(&self) -> impl Iterator<Item = &Series> {
        self.panels.iter().flat_map(|panel| &panel.series)
    }

    /// The series' names, in the order in which they come first. A name has the same colour in all panels.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in self.series() {
            if !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        names
    }

    fn svg(&self) -> String {
        let (categories, names) = (self.categories(), self.names());
        let most = self.series().flat_map(|it| &it.points).map(|point| point.1);
        let most = most.filter(|number| number.is_finite()).fold(0.0, f64::max);
        let step = step(most);
        let area = Area { categories: &categories, names: &names, step, top: top(most, step) };
        let width = self.panels.len().max(1) as f64 * (LEFT + WIDTH) + LEFT / 2.0;
        let legend = ABOVE + HEIGHT + BELOW;
        let height = legend + (names.len() as f64 + 1.0) * LINE;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        text(&mut out, (LEFT / 4.0, LINE), "start", "15", &self.title);
        for (number, panel) in self.panels.iter().enumerate() {
            let left = LEFT + number as f64 * (LEFT + WIDTH);
            area.axes(&mut out, left, &panel.title);
            for (place, series) in panel.series.iter().enumerate() {
                match self.has_bars {
                    true => area.bars(&mut out, left, series, (place, panel.series.len())),
                    false => area.line(&mut out, left, series),
                }
            }
        }
        let note = format!("across: {}; up: {}", self.across, self.up);
        text(&mut out, (LEFT, legend - LINE / 2.0), "start", "11", &note);
        for (number, name) in names.iter().enumerate() {
            let y = legend + (number as f64 + 0.5) * LINE;
            let (y_box, colour) = (y - 9.0, area.colour(name));
            let _ = writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{y_box}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"
            );
            text(&mut out, (LEFT + LINE, y), "start", "11", name);
        }
        out + "</svg>\n"
    }
}

/// What all panels share.
struct Area<'c> {
    categories: &'c [&'c str],
    names: &'c [&'c str],
    /// The distance of two numbers at the vertical axis.
    step: f64,
    /// The number at its upper end.
    top: f64,
}

impl Area<'_> {
    fn colour(&self, name: &str) -> &'static str {
        let place = self.names.iter().position(|it| *it == name).unwrap_or_default();
        COLOURS.get(place % COLOURS.len()).copied().unwrap_or("black")
    }

    fn y(&self, number: f64) -> f64 {
        ABOVE + HEIGHT * (1.0 - number.clamp(0.0, self.top) / self.top)
    }

    /// The width of a category.
    fn share(&self) -> f64 {
        WIDTH / self.categories.len().max(1) as f64
    }

    /// The middle of a category.
    fn x(&self, left: f64, category: &str) -> f64 {
        let place = self.categories.iter().position(|it| *it == category).unwrap_or_default();
        left + (place as f64 + 0.5) * self.share()
    }

    fn axes(&self, out: &mut String, left: f64, title: &str) {
        let (right, below) = (left + WIDTH, ABOVE + HEIGHT);
        text(out, (left + WIDTH / 2.0, ABOVE - LINE / 2.0), "middle", "12", title);
        let lines = (self.top / self.step).round() as usize;
        for line in 0..=lines {
            let number = line as f64 * self.step;
            let (y, tenths) = (self.y(number), if self.step < 1.0 { 2 } else { 0 });
            let _ = writeln!(
                out,
                "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>"
            );
            text(out, (left - 5.0, y + 4.0), "end", "11", &format!("{number:.tenths$}"));
        }
        let _ = writeln!(
            out,
            "<path d=\"M{left} {ABOVE}V{below}H{right}\" fill=\"none\" stroke=\"black\"/>"
        );
        for category in self.categories {
            text(out, (self.x(left, category), below + LINE), "middle", "11", category);
        }
    }

    fn line(&self, out: &mut String, left: f64, series: &Series) {
        let colour = self.colour(&series.name);
        let places: Vec<(f64, f64)> = series
            .points
            .iter()
            .filter(|(_, number)| number.is_finite())
            .map(|(category, number)| (self.x(left, category), self.y(*number)))
            .collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in places {
            let _ =
                writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
    }

    fn bars(&self, out: &mut String, left: f64, series: &Series, (place, count): (usize, usize)) {
        let colour = self.colour(&series.name);
        let width = self.share() * 0.8 / count.max(1) as f64;
        for (category, number) in series.points.iter().filter(|point| point.1.is_finite()) {
            let x = self.x(left, category) - self.share() * 0.4 + place as f64 * width;
            let y = self.y(*number);
            let height = ABOVE + HEIGHT - y;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
            );
        }
    }
}

/// The first item that fits, or a new one at the end.
fn found<T>(items: &mut Vec<T>, fits: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    match items.iter().position(fits) {
        Some(place) => &mut items[place],
        None => {
            items.push(new());
            let last = items.len() - 1;
            &mut items[last]
        }
    }
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, size: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{text}</text>"
    );
}

/// A round distance of the numbers at an axis that ends behind `most`.
fn step(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let rough = most / STEPS;
    let tenfold = 10_f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    tenfold * factors.into_iter().find(|factor| factor * tenfold >= rough).unwrap_or(10.0)
}

/// The end of the axis.
fn top(most: f64, step: f64) -> f64 {
    (most / step).ceil().max(1.0) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(has_bars: bool) -> Chart {
        let mut chart = Chart { title: "E1 <a & b>".into(), has_bars, ..Chart::default() };
        for (series, numbers) in
            [("one", [("1", 10.0), ("2", 40.0)]), ("two", [("1", 5.0), ("10", 0.0)])]
        {
            for (category, number) in numbers {
                chart.add("4 clients", series, category, number);
            }
        }
        chart
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let ends =
            [0.0, 0.7, 9.0, 10.0, 43.0, 1_234.0].map(|most| (step(most), top(most, step(most))));
        let expected =
            [(1.0, 1.0), (0.2, 0.8), (2.0, 10.0), (2.0, 10.0), (10.0, 50.0), (500.0, 1_500.0)];
        for ((step, top), (wanted, end)) in ends.into_iter().zip(expected) {
            assert!((step - wanted).abs() < 1e-9 && (top - end).abs() < 1e-9, "{step} {top}");
        }
    }

    #[test]
    fn higher_numbers_stand_higher_and_later_categories_to_the_right() {
        let svg = chart(false).svg();
        let attribute = |line: &str, name: &str| -> f64 {
            let behind = line.split_once(&format!("{name}=\"")).unwrap().1;
            behind.split_once('"').unwrap().0.parse().unwrap()
        };
        let dots: Vec<(f64, f64)> = svg
            .lines()
            .filter(|line| line.starts_with("<circle"))
            .map(|line| (attribute(line, "cx"), attribute(line, "cy")))
            .collect();
        let [one, two, three, four] = dots[..] else { panic!("{dots:?}") };
        assert!(one.0 < two.0 && two.0 < four.0 && (one.0 - three.0).abs() < 0.1, "{dots:?}");
        assert!(two.1 < one.1 && one.1 < three.1 && three.1 < four.1, "{dots:?}");
        assert!((four.1 - (ABOVE + HEIGHT)).abs() < 0.1, "nothing stands on the axis: {dots:?}");
    }

    #[test]
    fn a_chart_is_well_formed_and_every_series_is_named() {
        for has_bars in [false, true] {
            let svg = chart(has_bars).svg();
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
            assert!(svg.contains("E1 &lt;a &amp; b&gt;") && svg.contains(">two</text>"));
            let opened = svg.matches("<text").count();
            assert_eq!(opened, svg.matches("</text>").count());
            assert_eq!(svg.matches("<polyline").count(), if has_bars { 0 } else { 2 });
        }
        assert!(Chart::default().svg().ends_with("</svg>\n"));
        let table = chart(false).table().to_string();
        let words: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(words, ["4", "clients", "two", "5.00", "0.00"]);
    }
}
