//! The self-check of generated rows against held-out real ones. The first quarter of the English
//! documents, extended by generated rows to the full number, is compared with all of them. Lengths
//! are compared with those of the first quarter, because those of the whole differ from them by
//! more than the bounds allow.

use std::path::Path;

use anyhow::{Result, bail};
use remora_engine::TextQuery;
use rustc_hash::FxHashMap;

use crate::{
    corpus::{Corpus, Document, read_query_texts},
    measure::percentile,
    oracle::Oracle,
    queries::game_expression,
    table::Table,
};

use super::Extender;

/// Rows are generated from the first of this many parts of the documents.
const SHARE_LEARNT: usize = 4;
/// A query is compared if at least this many real rows match it.
const LEAST_HITS: u64 = 20;
/// Shorter words of a question are left out.
const LEAST_WORD_CHARS: usize = 4;

/// One figure, for both sets.
struct Line {
    name: String,
    real: f64,
    generated: f64,
    /// The difference.
    difference: f64,
    /// The largest allowed difference.
    allowed: f64,
}

/// Generates, compares and prints; fails if a figure is out of its bounds.
pub fn corpus_check(data: &Path, documents: Vec<Document>) -> Result<()> {
    let real: Vec<Document> =
        documents.into_iter().filter(|document| document.language == "en").collect();
    let learnt = real.len() / SHARE_LEARNT;
    let extender = Extender::new(&real[..learnt], &[("en", 1)]);
    let numbers = (learnt as u64 + 1)..=real.len() as u64;
    let mut generated = real[..learnt].to_vec();
    generated.extend(numbers.filter_map(|n| extender.row(n)));
    println!("{} rows made from {learnt}, beside {} real ones\n", generated.len(), real.len());
    let lengths = deciles(&real[..learnt]);
    let (real, generated) = (Corpus::new(real), Corpus::new(generated));
    let mut lines = compare(&Figures::of(&real), &Figures::of(&generated));
    lines.extend(compare_lengths(&lengths, &deciles(&generated.documents)));
    for (file, expression) in [
        ("queries-nq-en.jsonl.zst", question as fn(&str) -> Option<TextQuery>),
        ("queries-sbg-en.jsonl.zst", |text| Some(game_expression(text)?.1)),
    ] {
        if data.join(file).exists() {
            let texts = read_query_texts(&data.join(file))?;
            let queries: Vec<TextQuery> =
                texts.iter().filter_map(|text| expression(text)).collect();
            lines.push(compare_hits(file, &queries, &real, &generated)?);
        }
    }
    print!("{}", table(&lines));
    let out = lines.iter().filter(|line| line.difference > line.allowed).count();
    if out > 0 {
        bail!("{out} of {} figures are out of their bounds", lines.len());
    }
    Ok(())
}

/// The figures of a set of rows.
struct Figures {
    words: usize,
    once: usize,
    slope: f64,
}

impl Figures {
    fn of(corpus: &Corpus) -> Self {
        let mut counts = FxHashMap::<&str, u64>::default();
        for text in &corpus.texts {
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            words.for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let mut frequencies: Vec<u64> = counts.into_values().collect();
        frequencies.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            words: frequencies.len(),
            once: frequencies.iter().filter(|frequency| **frequency == 1).count(),
            slope: slope(&frequencies),
        }
    }
}

fn compare(real: &Figures, generated: &Figures) -> Vec<Line> {
    vec![
        ratio("different words", real.words as f64, generated.words as f64, 0.05),
        ratio("words seen once", real.once as f64, generated.once as f64, 0.10),
        Line {
            name: "slope of frequency over rank".into(),
            real: real.slope,
            generated: generated.slope,
            difference: (real.slope - generated.slope).abs(),
            allowed: 0.02,
        },
    ]
}

/// The nine deciles of the texts' lengths, in characters.
fn deciles(documents: &[Document]) -> Vec<usize> {
    let mut lengths: Vec<usize> =
        documents.iter().map(|document| document.text.chars().count()).collect();
    lengths.sort_unstable();
    (1..10).map(|decile| percentile(&lengths, decile * 10)).collect()
}

fn compare_lengths(real: &[usize], generated: &[usize]) -> Vec<Line> {
    let pairs = real.iter().zip(generated).enumerate();
    let line = |(index, (real, generated)): (usize, (&usize, &usize))| {
        let name = format!("length, decile {}", index + 1);
        ratio(&name, *real as f64, *generated as f64, 0.02)
    };
    pairs.map(line).collect()
}

/// The median over the queries of how many times as many generated rows as real ones match.
fn compare_hits(
    file: &str,
    queries: &[TextQuery],
    real: &Corpus,
    generated: &Corpus,
) -> Result<Line> {
    let (real, generated) = (Oracle::scan(real, queries)?, Oracle::scan(generated, queries)?);
    let mut ratios: Vec<f64> = Vec::new();
    for query in queries {
        let hits = real.answer(query).total;
        if hits >= LEAST_HITS {
            ratios.push(generated.answer(query).total as f64 / hits as f64);
        }
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let name = format!("hits, median of {} {file}", ratios.len());
    Ok(ratio(&name, 1.0, percentile(&ratios, 50), 0.10))
}

/// A question as a query for the rows that contain all its longer words.
fn question(text: &str) -> Option<TextQuery> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.chars().count() >= LEAST_WORD_CHARS);
    let terms: Vec<TextQuery> = words.map(|word| TextQuery::Term(word.to_owned())).collect();
    (!terms.is_empty()).then_some(TextQuery::And(terms))
}

/// The slope of the line through log frequency over log rank, ranks 10 to 10,000.
fn slope(descending: &[u64]) -> f64 {
    let points = descending.iter().enumerate().take(10_000).skip(9);
    let points: Vec<(f64, f64)> = points
        .map(|(index, frequency)| (((index + 1) as f64).ln(), (*frequency as f64).ln()))
        .collect();
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    covariance / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

fn ratio(name: &str, real: f64, generated: f64, allowed: f64) -> Line {
    let difference = (generated / real - 1.0).abs();
    Line { name: name.to_owned(), real, generated, difference, allowed }
}

fn table(lines: &[Line]) -> String {
    let mut table = Table::new(&["", "real", "generated", "differ by", "allowed", ""]);
    for line in lines {
        let is_out = line.difference > line.allowed;
        table.row(vec![
            line.name.clone(),
            figure(line.real),
            figure(line.generated),
            format!("{:.3}", line.difference),
            format!("{:.3}", line.allowed),
            if is_out { "OUT".into() } else { String::new() },
        ]);
    }
    table.to_string()
}

fn figure(value: f64) -> String {
    if value.abs() < 100.0 { format!("{value:.3}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_power_law_is_its_exponent() {
        let frequencies: Vec<u64> =
            (1..=20_000).map(|rank| (1e12 / f64::from(rank)) as u64).collect();
        assert!((slope(&frequencies) + 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_set_equals_itself_and_a_tiny_corpus_is_checked() {
        let documents = (1..=400)
            .map(|id| Document {
                id,
                language: "en".into(),
                title: format!("Name {id}"),
                text: format!("The river {} is long. It flows.", "far ".repeat(id as usize % 9)),
                ..Default::default()
            })
            .collect::<Vec<_>>();
        let corpus = Corpus::new(documents.clone());
        let figures = Figures::of(&corpus);
        assert!(compare(&figures, &figures).iter().all(|line| line.difference == 0.0));
        let extender = Extender::new(&documents[..100], &[("en", 1)]);
        let mut generated = documents[..100].to_vec();
        generated.extend((101..=400).filter_map(|n| extender.row(n)));
        let lines = compare_lengths(&deciles(&documents), &deciles(&generated));
        assert!(lines[4].difference < 0.1, "{}", table(&lines));
    }

    #[test]
    fn a_question_keeps_its_longer_words() {
        let terms = ["when", "last"].map(|word| TextQuery::Term(word.into()));
        assert_eq!(question("when was the last"), Some(TextQuery::And(terms.into())));
    }
}
