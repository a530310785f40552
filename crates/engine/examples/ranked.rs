//! Measures ranked search in one process: the least time of several for each query, by class of query and page.
//!
//! ```text
//! cargo run --release -p remora-engine --example ranked -- DIR DATA [ROWS] [FIELDS]
//! ```
//! `DIR` keeps the table that is built once of the JSON Lines in `DATA`; `ROWS` beyond those are made of short runs of
//! their sentences. The queries have the lengths of a log of a search service: three words in the mean.

mod common;

use std::{path::Path, sync::Arc, time::Instant};

use remora_engine::{
    Change, ChangeBatch, Database, KeywordQuery, Options, Reader, Row, SearchRequest, Selection,
    SortBy, SortKey, TableChanges, TextQuery, Value, WordsDef,
};
use remora_words::{rank::Ranker, settings::Settings};

use common::{Outcome, TABLE, lines, schema, text, wiki_files};

/// Rows of one batch of the build.
const BATCH: usize = 16_384;
/// About the bytes of a row that is made of sentences.
const MADE_BYTES: usize = 330;
/// Queries of each class.
const QUERIES: usize = 400;
/// How often each is asked; the least time counts.
const ROUNDS: usize = 5;
/// Of a hundred queries so many have one word, two words, and so on.
const LENGTHS: [usize; 8] = [15, 27, 25, 15, 9, 4, 3, 2];
/// Texts of which words are drawn by how often they occur: every tenth.
const DRAWN_TEXTS: usize = 10;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, data, rest @ ..] = &arguments[..] else { return Err("DIR DATA".into()) };
    let rows = rest.first().map_or(Ok(301_450), |rows| rows.parse())?;
    let fields = rest.get(1).map_or(Ok(2), |fields| fields.parse())?;
    let (directory, data) = (Path::new(directory), Path::new(data));
    let is_new = !directory.exists();
    let database = Database::open(directory, Options::default())?;
    if is_new {
        build(&database, data, rows, fields)?;
    }
    let reader = database.reader();
    let segments = database.statistics(TABLE)?.segments;
    println!("{} rows, {segments} segments", reader.row_count(TABLE)?);
    let asked = rest.get(2).map(String::as_str);
    if let Some(query) = asked.and_then(|asked| asked.strip_prefix('=')) {
        return measure(&reader, "query", &Ranker::ProximityBm25, &[query.to_owned()]);
    }
    for (class, ranker, queries) in classes(data)? {
        if asked.is_none_or(|asked| class.contains(asked)) {
            measure(&reader, &class, &ranker, &queries)?;
        }
    }
    Ok(())
}

/// Numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) % limit.max(1) as u64) as usize
    }
}

fn build(database: &Database, data: &Path, rows: usize, fields: usize) -> Outcome<()> {
    let words = WordsDef::new(1, (3 - fields..3).collect(), &Settings::default(), Vec::new())?;
    database.create_table(schema(Vec::new(), Some(words)))?;
    let started = Instant::now();
    let (mut batch, mut id) = (Vec::new(), 0u64);
    let (mut sentences, mut titles): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let is_made = rows > 301_450;
    for path in wiki_files(data)? {
        for line in lines(&path)? {
            let line = line?;
            if is_made && text(&line, "lang") != "en" {
                continue;
            }
            if is_made {
                titles.push(text(&line, "title").to_owned());
                sentences.extend(text(&line, "text").split_inclusive(". ").map(str::to_owned));
                continue;
            }
            id += 1;
            put(database, &mut batch, row(id, text(&line, "title"), text(&line, "text")))?;
        }
    }
    let mut random = Random(7);
    while is_made && (id as usize) < rows {
        id += 1;
        let mut made = String::new();
        let mut at = random.below(sentences.len());
        while made.len() < MADE_BYTES {
            made.push_str(&sentences[at]);
            at = if random.below(2) == 0 {
                (at + 1) % sentences.len()
            } else {
                random.below(sentences.len())
            };
        }
        put(database, &mut batch, row(id, &titles[random.below(titles.len())], &made))?;
    }
    send(database, &mut batch)?;
    database.optimize(Some(TABLE))?;
    println!("built in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn row(id: u64, title: &str, text: &str) -> Row {
    vec![Value::Uint(id), Value::Text(Arc::from(title)), Value::Text(Arc::from(text))]
}

fn put(database: &Database, batch: &mut Vec<Change>, row: Row) -> Outcome<()> {
    batch.push(Change::Put(row));
    if batch.len() == BATCH { send(database, batch) } else { Ok(()) }
}

fn send(database: &Database, batch: &mut Vec<Change>) -> Outcome<()> {
    let tables = vec![TableChanges { table: Arc::from(TABLE), changes: std::mem::take(batch) }];
    database.apply(ChangeBatch { tables, positions: Vec::new() })?;
    Ok(())
}

/// How many words a query has.
fn length(random: &mut Random) -> usize {
    let mut part = random.below(100);
    let length = LENGTHS.iter().position(|&share| match part.checked_sub(share) {
        Some(rest) => {
            part = rest;
            false
        }
        None => true,
    });
    length.unwrap_or(0) + 1
}

/// Runs of words out of questions and searches, with the lengths of a log.
fn drawn(data: &Path) -> Outcome<Vec<Vec<String>>> {
    let mut all = Vec::new();
    for name in ["queries-nq-en.jsonl.zst", "queries-sbg-en.jsonl.zst"] {
        for line in lines(&data.join(name))? {
            let line = line?;
            let words = text(&line, "text").split(|c: char| !c.is_alphanumeric());
            let words: Vec<String> =
                words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
            all.push(words);
        }
    }
    let mut random = Random(11);
    let mut drawn = Vec::new();
    while drawn.len() < QUERIES {
        let length = length(&mut random);
        let words = &all[random.below(all.len())];
        if words.len() >= length {
            let at = random.below(words.len() - length + 1);
            drawn.push(words[at..at + length].to_vec());
        }
    }
    Ok(drawn)
}

/// Different words of the texts, each drawn by itself: every occurrence is as likely as any other, so that frequent ones
/// are in most queries.
fn by_occurrences(data: &Path) -> Outcome<Vec<Vec<String>>> {
    let mut all: Vec<String> = Vec::new();
    for file in 0..4 {
        let path = data.join(format!("wiki-en-{file}.jsonl.zst"));
        let texts = lines(&path)?;
        for line in texts.step_by(DRAWN_TEXTS) {
            let line = line?;
            let words = text(&line, "text").split(|c: char| !c.is_ascii_alphanumeric());
            all.extend(words.filter(|word| !word.is_empty()).map(str::to_lowercase));
        }
    }
    let mut random = Random(13);
    let mut drawn = Vec::new();
    while drawn.len() < QUERIES {
        let length = length(&mut random);
        let mut words: Vec<String> = Vec::new();
        while words.len() < length {
            let word = &all[random.below(all.len())];
            if !words.contains(word) {
                words.push(word.clone());
            }
        }
        drawn.push(words);
    }
    Ok(drawn)
}

/// How many of 1,000 queries of the study have one word, two words and so on: 3.1 on average.
const STUDY_LENGTHS: [usize; 10] = [178, 260, 230, 140, 90, 50, 25, 15, 6, 6];
/// Queries of each kind of the study.
const STUDY_QUERIES: usize = 1_000;
/// Longer keywords are not drawn.
const LONGEST_WORD: usize = 42;

/// The queries of the benchmark of ranked search: words drawn by their occurrences in all texts, and as many
/// different words that stand behind each other.
fn of_the_study(data: &Path) -> Outcome<Vec<(Vec<String>, Vec<String>)>> {
    let is_letter =
        |c: char| c.is_ascii_alphanumeric() || c == '_' || ('\u{410}'..='\u{44f}').contains(&c);
    let (mut fields, mut ends, mut count) = (Vec::new(), Vec::new(), 0);
    for path in wiki_files(data)? {
        for line in lines(&path)? {
            let line = line?;
            for name in ["title", "text"] {
                let field = text(&line, name).to_owned();
                let words = field.split(|c| !is_letter(c)).filter(|word| !word.is_empty());
                count += words.count();
                ends.push(count);
                fields.push(field);
            }
        }
    }
    let from = |place: usize| {
        let field = ends.partition_point(|end| *end <= place);
        let before = if field == 0 { 0 } else { ends[field - 1] };
        let words = fields[field].split(move |c| !is_letter(c)).filter(|word| !word.is_empty());
        words.skip(place - before)
    };
    let keyword = |word: &str| {
        (word.is_ascii() && word.len() <= LONGEST_WORD).then(|| word.to_ascii_lowercase())
    };
    let mut random = Random(17);
    let mut queries = Vec::new();
    while queries.len() < STUDY_QUERIES {
        let mut place = random.below(1_000);
        let length = STUDY_LENGTHS.iter().position(|&share| {
            let is_it = place < share;
            place = place.saturating_sub(share);
            is_it
        });
        let length = length.unwrap_or(0) + 1;
        let mut words: Vec<String> = Vec::new();
        while words.len() < length {
            let word = from(random.below(count)).next().and_then(keyword);
            words.extend(word.filter(|word| !words.contains(word)));
        }
        let run = loop {
            let run = from(random.below(count)).take(length).map_while(keyword);
            let run: Vec<String> = run.collect();
            let is_new = |at: usize| !run[..at].contains(&run[at]);
            if run.len() == length && (0..length).all(is_new) {
                break run;
            }
        };
        queries.push((words, run));
    }
    Ok(queries)
}

type Class = (String, Ranker, Vec<String>);

fn classes(data: &Path) -> Outcome<Vec<Class>> {
    let drawn = drawn(data)?;
    let long: Vec<&Vec<String>> = drawn.iter().filter(|words| words.len() > 1).collect();
    let joined = |words: &Vec<String>| words.join(" ");
    let any = |words: &Vec<String>| format!("\"{}\"/1", words.join(" "));
    let mut classes = Vec::new();
    let plain = Ranker::ProximityBm25;
    classes.push(("any".to_owned(), plain.clone(), drawn.iter().map(any).collect()));
    for length in 1..=LENGTHS.len() {
        let of_length = drawn.iter().filter(|words| words.len() == length);
        classes.push((format!("any {length}"), plain.clone(), of_length.map(any).collect()));
    }
    classes.push(("all".to_owned(), plain.clone(), drawn.iter().map(joined).collect()));
    let phrase = |words: &&Vec<String>| format!("\"{}\"", words.join(" "));
    classes.push(("phrase".to_owned(), plain.clone(), long.iter().map(phrase).collect()));
    let near = |words: &&Vec<String>| format!("\"{}\"~5", words.join(" "));
    classes.push(("proximity".to_owned(), plain.clone(), long.iter().map(near).collect()));
    let boolean = |words: &&Vec<String>| match &words[..] {
        [one, other] => format!("{one} -{other}"),
        [first, second, third, ..] => format!("{first} ({second} | {third})"),
        _ => words.join(" "),
    };
    classes.push(("boolean".to_owned(), plain, long.iter().map(boolean).collect()));
    let frequent = by_occurrences(data)?;
    let either = |words: &Vec<String>| words.join(" | ");
    for (name, ranker) in [("", Ranker::ProximityBm25), (" matchany", Ranker::MatchAny)] {
        let queries = frequent.iter().map(either).collect();
        classes.push((format!("drawn any{name}"), ranker, queries));
    }
    let queries = frequent.iter().map(joined).collect();
    classes.push(("drawn all".to_owned(), Ranker::ProximityBm25, queries));
    classes.push(("any bm25".to_owned(), Ranker::Bm25, drawn.iter().map(any).collect()));
    classes.push(("any matchany".to_owned(), Ranker::MatchAny, drawn.iter().map(any).collect()));
    classes.push(("any sph04".to_owned(), Ranker::Sph04, drawn.iter().map(any).collect()));
    if std::env::args().nth(5).is_some_and(|class| class.starts_with("study")) {
        let queries = of_the_study(data)?;
        let plain = Ranker::ProximityBm25;
        let each = |of: &dyn Fn(&[String], &[String]) -> String| -> Vec<String> {
            queries.iter().map(|(words, run)| of(words, run)).collect()
        };
        classes.push(("study any".into(), plain.clone(), each(&|words, _| words.join(" | "))));
        classes.push(("study all".into(), plain.clone(), each(&|words, _| words.join(" "))));
        let phrase = each(&|_, run| format!("\"{}\"", run.join(" ")));
        classes.push(("study phrase".into(), plain.clone(), phrase));
        let near = each(&|_, run| format!("\"{}\"~5", run.join(" ")));
        classes.push(("study proximity".into(), plain, near));
    }
    Ok(classes)
}

fn request(query: &str, ranker: &Ranker, limit: usize) -> SearchRequest {
    let asked =
        KeywordQuery { text: query.to_owned(), ranker: ranker.clone(), ..KeywordQuery::default() };
    SearchRequest {
        selection: Selection {
            table: TABLE.to_owned(),
            text: Some(TextQuery::Keywords(Arc::new(asked))),
            ..Selection::default()
        },
        sort: vec![
            SortKey { by: SortBy::Score, descending: true },
            SortKey { by: SortBy::Key, descending: false },
        ],
        limit,
        ..SearchRequest::default()
    }
}

fn measure(reader: &Reader, class: &str, ranker: &Ranker, queries: &[String]) -> Outcome<()> {
    let mut line = format!("{class:<14} {:>4}", queries.len());
    let mut sum = 0u64;
    for (page, limit, counts) in
        [("10", 10, false), ("100", 100, false), ("100+count", 100, true), ("count", 0, true)]
    {
        let mut times = vec![u64::MAX; queries.len()];
        for _ in 0..ROUNDS {
            for (query, time) in queries.iter().zip(&mut times) {
                let request = request(query, ranker, limit);
                let started = Instant::now();
                if limit > 0 {
                    let hits = match reader.best_page(&request)? {
                        Some((hits, _)) => hits,
                        None => reader.search(&request)?.hits,
                    };
                    for hit in &hits {
                        sum = sum.wrapping_mul(31).wrapping_add(hit.score.unwrap_or(0.0) as u64);
                        if let Some(Value::Uint(key)) = hit.key.first() {
                            sum = sum.wrapping_mul(31).wrapping_add(*key);
                        }
                    }
                }
                if counts {
                    sum =
                        sum.wrapping_mul(31).wrapping_add(reader.count(&request.selection)?.count);
                }
                *time = (started.elapsed().as_nanos() as u64).min(*time);
            }
        }
        let mut ordered: Vec<(u64, &String)> = times.into_iter().zip(queries).collect();
        ordered.sort_unstable();
        let at = |share: usize| ordered[(ordered.len() * share / 100).min(ordered.len() - 1)].0;
        let mean = ordered.iter().map(|(time, _)| time).sum::<u64>() / ordered.len() as u64;
        let milliseconds = |time: u64| time as f64 / 1e6;
        line += &format!(
            " | {page} {:.3} p50 {:.3} p99 {:.2}",
            milliseconds(mean),
            milliseconds(at(50)),
            milliseconds(at(99)),
        );
        if std::env::var_os("SLOWEST").is_some() && page == "100" {
            for (time, query) in ordered.iter().rev().take(12) {
                println!("    {:.3} {query}", milliseconds(*time));
            }
        }
        if let Some(path) = std::env::var_os("TIMES").filter(|_| page == "100") {
            use std::io::Write;
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            for (time, query) in &ordered {
                writeln!(file, "{class}\t{time}\t{query}")?;
            }
        }
    }
    println!("{line} | {sum:016x}");
    Ok(())
}
