//! The study of a log of queries: how response times are spread, by the number of words of a query and by the documents
//! of its words. A query counts as cold where it is the first of its text in the log.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{BufRead, BufReader},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    chart::Chart,
    histogram::{self, CLASSES, SIZES, Spread},
};

/// Words that are operators, in capitals.
const OPERATORS: [&str; 7] =
    ["MAYBE", "NEAR", "NOTNEAR", "SENTENCE", "PARAGRAPH", "ZONE", "ZONESPAN"];
/// The limits of time of which the shares of queries are told, in milliseconds.
const LIMITS_MS: [u64; 5] = [1, 10, 100, 300, 500];

/// A query of the log.
#[derive(Debug, PartialEq)]
struct LoggedQuery {
    time: Duration,
    /// The text of the keyword query.
    text: String,
    /// The rows that contain each of its words, summed up, if the log tells them.
    documents: Option<u64>,
}

/// Response times by state and class.
type Times = BTreeMap<(&'static str, usize), Vec<Duration>>;

/// Prints the histograms of a log and writes their charts into a directory.
pub fn study(path: &Path, charts: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut by_words, mut by_size) = (Times::new(), Times::new());
    let (mut known, mut all, mut passed_over) = (HashSet::new(), Vec::new(), 0_usize);
    for line in BufReader::new(file).split(b'\n') {
        let line = line.with_context(|| format!("cannot read {}", path.display()))?;
        let line = String::from_utf8_lossy(&line);
        let Some(query) = parse(line.trim()) else {
            passed_over += usize::from(!line.trim().is_empty());
            continue;
        };
        let state = if known.insert(hash(&query.text)) { "cold" } else { "warm" };
        let class = |fits: &dyn Fn(usize) -> bool, count: usize| {
            (0..count).rev().find(|place| fits(*place)).unwrap_or(0)
        };
        let words = words(&query.text).max(1);
        let place = class(&|place| CLASSES[place].1 <= words, CLASSES.len());
        by_words.entry((state, place)).or_default().push(query.time);
        if let Some(documents) = query.documents {
            let place = class(&|place| SIZES[place].1 <= documents, SIZES.len());
            by_size.entry((state, place)).or_default().push(query.time);
        }
        all.push(query.time);
    }
    ensure!(!all.is_empty(), "{} has no query with a text", path.display());
    println!("{} queries, {passed_over} other lines", all.len());
    for limit in LIMITS_MS {
        let within = all.iter().filter(|time| time.as_millis() < u128::from(limit)).count();
        println!("{:8.3} % under {limit} ms", 100.0 * within as f64 / all.len() as f64);
    }
    fs::create_dir_all(charts)?;
    let names = CLASSES.map(|(name, ..)| name);
    show(&by_words, &names, ("words", "log-words"), charts)?;
    let sizes = SIZES.map(|(name, _)| name);
    show(&by_size, &sizes, ("documents from", "log-documents"), charts)
}

/// Prints a histogram and writes its chart.
fn show(
    times: &Times,
    classes: &[&'static str],
    (by, name): (&'static str, &str),
    charts: &Path,
) -> Result<()> {
    if times.is_empty() {
        println!("\nThe log does not tell the documents of words.");
        return Ok(());
    }
    let mut chart = Chart {
        name: name.to_owned(),
        title: format!("Response times by {by}"),
        across: "milliseconds".to_owned(),
        up: "per cent of the queries".to_owned(),
        ..Chart::default()
    };
    let mut spreads = Vec::new();
    for (&(state, place), times) in times {
        let spread = Spread::of("log", state, classes[place], times);
        let count = times.len();
        for (band, share) in spread.shares() {
            chart.add(state, classes[place], band, share);
        }
        println!("{state}, {by} {}: {count} queries", classes[place]);
        spreads.push(spread);
    }
    println!("\nPer cent by milliseconds:\n\n{}", histogram::table(&spreads, by));
    chart.write(charts)
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The query of a line; `None` for other lines, and for a statement without a keyword query.
fn parse(line: &str) -> Option<LoggedQuery> {
    match line.strip_prefix("/* ") {
        Some(line) => in_sql(line),
        None => in_brackets(line.strip_prefix('[')?),
    }
}

/// `DATE conn 7 real 0.001 wall 0.001 found 35 docs 1200 */ SELECT … MATCH('text') …`
fn in_sql(line: &str) -> Option<LoggedQuery> {
    let (figures, statement) = line.split_once(" */ ")?;
    let number = |name: &str| -> Option<&str> {
        let behind = figures.split_once(&format!(" {name} "))?.1;
        behind.split(' ').next()
    };
    let mut literals = statement.match_indices("MATCH(").map(|(at, _)| &statement[at + 6..]);
    let text = literals.find_map(literal)?;
    let documents = number("docs").and_then(|number| number.parse().ok());
    Some(LoggedQuery { time: seconds(number("wall")?)?, text, documents })
}

/// `DATE] 0.001 sec 0.001 sec [ext2/0/rel 35 (0,20)] [books] text`; older versions have one time.
fn in_brackets(line: &str) -> Option<LoggedQuery> {
    let (_, behind) = line.split_once("] ")?;
    let (times, behind) = behind.split_once('[')?;
    let times = times.split(" sec").map(str::trim);
    let time = times.filter(|time| time.parse::<f64>().is_ok()).last()?;
    let (_, mut text) = behind.split_once("] ")?;
    // The index, and figures of reads.
    while let Some((_, behind)) = text.strip_prefix('[').and_then(|text| text.split_once("] ")) {
        text = behind;
    }
    let text = text.trim();
    (!text.is_empty()).then_some(LoggedQuery {
        time: seconds(time)?,
        text: text.to_owned(),
        documents: None,
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// The text of the literal at the start.
fn literal(text: &str) -> Option<String> {
    let mut chars = text.trim_start().chars();
    let quote = chars.next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut chars = chars.peekable();
    let mut found = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => found.extend(chars.next()),
            c if c == quote && chars.next_if_eq(&quote).is_none() => return Some(found),
            c => found.push(c),
        }
    }
    None
}

/// The number of words of a query, without operators, limits and numbers of operators.
fn words(query: &str) -> usize {
    let (mut count, mut rest) = (0, query);
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(at) = rest.find(is_of_word) {
        let before = rest[..at].chars().next_back();
        let behind = &rest[at..];
        let length = behind.find(|c| !is_of_word(c)).unwrap_or(behind.len());
        let (word, next) = behind.split_at(length);
        rest = match rest[..at].trim_end_matches('!').chars().next_back() {
            Some('@') => next.find(' ').map_or("", |at| &next[at..]),
            Some('(') if rest[..at].trim_end_matches(['(', '!']).ends_with('@') => {
                next.find(')').map_or("", |at| &next[at..])
            }
            _ => next,
        };
        let is_limit = rest.len() != next.len() || matches!(before, Some('@'));
        let is_number = matches!(before, Some('/' | '~' | '^' | '[' | '.'))
            && word.starts_with(|c: char| c.is_ascii_digit());
        count += usize::from(!is_limit && !is_number && !OPERATORS.contains(&word));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(micros: u64, text: &str, documents: Option<u64>) -> Option<LoggedQuery> {
        Some(LoggedQuery { time: Duration::from_micros(micros), text: text.to_owned(), documents })
    }

    #[test]
    fn lines_of_both_formats_and_programs_are_read() {
        for (line, expected) in [
            (
                "/* Sun Nov 29 09:03:05.120 2026 conn 7 real 0.000123 wall 0.000123 found 35 docs 12 */ \
                 SELECT id FROM t WHERE MATCH('it\\'s a ''reef') LIMIT 3;",
                query(123, "it's a 'reef", Some(12)),
            ),
            (
                "/* Sun Nov 29 09:03:05.120 2026 conn 7 real 0.004 wall 0.005 found 35 */ SELECT * FROM t \
                 WHERE MATCH(?); # MATCH('a b')",
                query(5_000, "a b", None),
            ),
            (
                "/* Sun Nov 29 09:03:05.120 2026 conn 7 real 0.004 wall 0.005 found 3 */ SELECT 1;",
                None,
            ),
            (
                "[Sun Nov 29 09:03:05.120 2026] 0.004 sec 0.006 sec [ext2/0/rel 35 (0,20)] [books] a [b] c",
                query(6_000, "a [b] c", None),
            ),
            (
                "[Fri Jun 29 21:17:58.609 2007] 0.004 sec [all/0/rel 35254 (0,20)] [lj] [ios=6 kb=111.1 ms=0.5] test",
                query(4_000, "test", None),
            ),
            ("[Sun Nov 29 09:03:05.120 2026] 3 queries are left out", None),
            ("", None),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn words_are_counted_without_operators_and_limits() {
        for (query, count) in [
            ("a b c", 3),
            ("@title a | (b -c)", 3),
            ("@!(title,body) \"a b\"~5 NEAR/3 c^2.5", 3),
            ("@title[5] a MAYBE b", 2),
            ("\"a b c\"/2 =d$", 4),
            ("a SENTENCE b", 2),
            ("", 0),
        ] {
            assert_eq!(words(query), count, "{query}");
        }
    }

    #[test]
    fn a_log_gives_charts_by_words_and_by_documents() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("query.log");
        let line = |micros: u64, text: &str, docs: u64| {
            format!(
                "/* Sun Nov 29 09:03:05.120 2026 conn 7 real 0.{micros:06} wall 0.{micros:06} found 1 docs {docs} \
                 */ SELECT id FROM t WHERE MATCH('{text}');\n"
            )
        };
        let lines = [line(50, "a", 10), line(20, "a", 10), line(4_000, "a b", 2_000_000)];
        fs::write(&path, lines.concat()).unwrap();
        study(&path, directory.path()).unwrap();
        for name in ["log-words.svg", "log-documents.svg"] {
            let chart = fs::read_to_string(directory.path().join(name)).unwrap();
            assert!(chart.contains(">cold</text>") && chart.contains(">warm</text>"), "{name}");
        }
        fs::write(&path, "nothing\n").unwrap();
        assert!(study(&path, directory.path()).is_err());
    }
}
