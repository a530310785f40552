//! Queries for any piece of a text, in classes: runs of characters and pairs of words, each by how many rows contain
//! them. The figures of each class stand beside those of the rivals that answered the same queries.

use anyhow::Result;
use remora_engine::TextQuery;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    corpus::Corpus,
    measure::{Timing, percentile},
    oracle::rows_of_terms,
    queries::{Query, QuerySet, Substring, band, is_class},
    random::SplitMix64,
    report::{PeerFigures, PeerQuery, QueryFigures, Report},
    table::Table,
};

/// The number of queries.
const QUERIES: usize = 2_000;
/// At most so many of them are in a class, unless other classes have too few.
const PER_CLASS: usize = 200;
/// Pieces of each kind that are counted to find queries of all classes.
const CANDIDATES: usize = 12_000;
/// Draws for a candidate: texts may be too short.
const DRAWS_PER_CANDIDATE: usize = 4;
/// The shortest and the longest run of characters.
const SHORTEST: usize = 3;
const LONGEST: usize = 8;
const SEED: u64 = 20_261_128;

/// The queries, the same for the same corpus.
pub fn substrings(corpus: &Corpus) -> Result<Vec<Query>> {
    let mut random = SplitMix64::new(SEED);
    let mut drawn: Vec<(Substring, String)> = Vec::new();
    for kind in [Substring::Run, Substring::Pair] {
        let mut seen = FxHashSet::default();
        for _ in 0..CANDIDATES * DRAWS_PER_CANDIDATE {
            if seen.len() == CANDIDATES || corpus.texts.is_empty() {
                break;
            }
            let text = &corpus.texts[random.below(corpus.texts.len())];
            let piece = match kind {
                Substring::Run => run(text, &mut random),
                Substring::Pair => pair(text, &mut random),
            };
            if let Some(piece) = piece.filter(|piece| seen.insert(piece.clone())) {
                drawn.push((kind, piece));
            }
        }
    }
    let pieces: Vec<String> = drawn.iter().map(|(_, piece)| piece.clone()).collect();
    let rows = rows_of_terms(&corpus.texts, &pieces)?;
    let mut taken = FxHashMap::<String, usize>::default();
    let (mut queries, mut others) = (Vec::new(), Vec::new());
    for ((kind, piece), rows) in drawn.into_iter().zip(rows) {
        let group = format!("{} {}", kind.name(), band(rows.len() as u64));
        let count = taken.entry(group.clone()).or_default();
        *count += 1;
        let is_full = *count > PER_CLASS;
        let expression = TextQuery::Term(piece.clone());
        let query = Query { set: QuerySet::Substrings, group, name: piece, expression };
        if is_full { others.push(query) } else { queries.push(query) }
    }
    queries.extend(others);
    queries.truncate(QUERIES);
    Ok(queries)
}

/// A run of characters that neither begins nor ends with a space.
fn run(text: &str, random: &mut SplitMix64) -> Option<String> {
    let length = SHORTEST + random.below(LONGEST - SHORTEST + 1);
    let mut start = random.below(text.len().max(1));
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let run: String = text.get(start..)?.chars().take(length).collect();
    let is_whole = run.chars().count() == length && run.trim() == run;
    (is_whole && !run.chars().any(char::is_control)).then_some(run)
}

/// Two words of letters and digits with one space between them.
fn pair(text: &str, random: &mut SplitMix64) -> Option<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let first = random.below(words.len().max(1));
    let pair = words.get(first..first + 2)?;
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    pair.iter().all(is_word).then(|| pair.join(" "))
}

/// The engine's figures of each class beside those of the rivals: the median and the 99th percentile of the queries'
/// medians, in microseconds. `None` if there are no classes.
pub fn classes(report: &Report) -> Option<Table> {
    let mut heads = vec!["class", "queries", "rows", "operation", "Remora engine"];
    heads.extend(report.peers.iter().map(|peer| peer.name.as_str()));
    heads.push("");
    let mut table = Table::new(&heads);
    let mut classes: Vec<&str> = Vec::new();
    for group in report.queries.iter().map(|query| query.group.as_str()) {
        if is_class(group) && !classes.contains(&group) {
            classes.push(group);
        }
    }
    classes.sort_by_key(|class| smallest(report, class));
    let has_classes = !classes.is_empty();
    for class in classes {
        let queries: Vec<&QueryFigures> =
            report.queries.iter().filter(|query| query.group == class).collect();
        let (least, most) = rows(&queries);
        for operation in ["SEARCH", "COUNT"] {
            let mut cells = vec![
                class.to_owned(),
                queries.len().to_string(),
                format!("{least}-{most}"),
                operation.to_owned(),
            ];
            let own = queries.iter().map(|query| match operation {
                "SEARCH" => &query.engine.search,
                _ => &query.engine.count,
            });
            cells.push(spread(own.filter(|timing| timing.runs > 0)));
            cells.extend(report.peers.iter().map(|peer| peer_cell(peer, &queries, operation)));
            cells.push(String::new());
            table.row(cells);
        }
    }
    has_classes.then_some(table)
}

/// Classes of runs come before those of pairs, rare ones before frequent ones.
fn smallest(report: &Report, class: &str) -> (bool, u64) {
    let own = report.queries.iter().filter(|query| query.group == class);
    (
        class.starts_with(Substring::Pair.name()),
        own.map(|query| query.truth).min().unwrap_or_default(),
    )
}

fn rows(queries: &[&QueryFigures]) -> (u64, u64) {
    let rows = || queries.iter().map(|query| query.truth);
    (rows().min().unwrap_or_default(), rows().max().unwrap_or_default())
}

/// A rival's figures, and how many of its answers are wrong.
fn peer_cell(peer: &PeerFigures, queries: &[&QueryFigures], operation: &str) -> String {
    let own = |other: &&PeerQuery| queries.iter().any(|query| query.name == other.name);
    let asked: Vec<&PeerQuery> = peer.queries.iter().filter(own).collect();
    let timings = asked.iter().map(|query| match operation {
        "SEARCH" => &query.search,
        _ => &query.count,
    });
    let figures = spread(timings.filter(|timing| timing.runs > 0));
    match asked.iter().filter(|query| !query.is_right).count() {
        0 => figures,
        wrong => format!("{figures} ({wrong} wrong)"),
    }
}

fn spread<'t>(timings: impl Iterator<Item = &'t Timing>) -> String {
    let mut medians: Vec<f64> = timings.map(|timing| timing.p50_us).collect();
    medians.sort_unstable_by(f64::total_cmp);
    match medians.is_empty() {
        true => "-".to_owned(),
        false => format!("{:.1} / {:.1}", percentile(&medians, 50), percentile(&medians, 99)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{corpus::Document, report::Operations};

    fn corpus(texts: &[&str]) -> Corpus {
        let document = |(number, text): (usize, &&str)| Document {
            id: number as u64 + 1,
            text: (*text).into(),
            ..Default::default()
        };
        Corpus::new(texts.iter().enumerate().map(document).collect())
    }

    #[test]
    fn pieces_occur_and_have_the_asked_forms() {
        let corpus = corpus(&[
            "the quick brown fox",
            "日本語の文章です とても",
            "the lazy dog, and a-b",
            "x",
        ]);
        let queries = substrings(&corpus).unwrap();
        assert!(queries.len() > 20);
        for Query { name, group, .. } in &queries {
            assert!(corpus.texts.iter().any(|text| text.contains(name)), "{name}");
            let length = name.chars().count();
            match group.starts_with("pair") {
                true => assert_eq!(name.split(' ').count(), 2, "{name}"),
                false => assert!((SHORTEST..=LONGEST).contains(&length), "{name}"),
            }
        }
        let names =
            |queries: &[Query]| queries.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&queries), names(&substrings(&corpus).unwrap()));
        assert!(names(&queries).contains(&"the lazy".to_owned()));
    }

    #[test]
    fn a_class_shows_the_spread_of_its_queries_and_wrong_answers_of_rivals() {
        let timing = |p50_us| Timing { runs: 1, p50_us, ..Timing::default() };
        let query = |number: u64| QueryFigures {
            name: format!("q{number}"),
            group: "run 1-10".into(),
            truth: number,
            engine: Operations {
                search: timing(number as f64),
                count: timing(0.5),
                ..Operations::default()
            },
            ..QueryFigures::default()
        };
        let peer = PeerQuery {
            name: "q3".into(),
            search: timing(80.0),
            count: timing(70.0),
            found: 1,
            is_right: false,
            note: None,
        };
        let peers = vec![PeerFigures {
            name: "Other".into(),
            in_process: true,
            load: None,
            queries: vec![peer],
        }];
        let queries = (1..=9).map(query).collect();
        let report = Report { queries, peers, ..Report::default() };
        let text = classes(&report).unwrap().to_string();
        let line = text.lines().nth(1).unwrap();
        for part in ["run 1-10", "1-9", "5.0 / 9.0", "80.0 / 80.0 (1 wrong)"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(classes(&Report::default()).is_none());
    }
}
