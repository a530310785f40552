//! What it costs to index texts, by processor time and part: segments of batches, their merge, and the same in a table
//! with its rows.
//!
//! ```text
//! cargo run --release -p remora-engine --example building -- DATA [index|table|both] [text|words|all] [ROWS] [BATCH]
//! ```
//! `DATA` has JSON Lines packed by zstd. The checksums of the segments tell whether another version writes the same
//! bytes.

mod common;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    Change, ChangeBatch, Database, Normalization, Options, Schema, TableChanges, TextDef, Value,
    WordsDef,
};
use remora_index::{
    paths::PathKeys,
    segment::{
        Document, MergeInput, Segment, SegmentBuilder, SegmentSpec, TextSpec, WordsSpec, merge,
    },
};
use remora_words::settings::Settings;

use common::{Outcome, TABLE, lines, schema, text, wiki_files};

struct Row {
    title: String,
    text: String,
}

/// What is indexed.
#[derive(Clone, Copy)]
struct IndexedParts {
    text: bool,
    words: bool,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let Some(data) = argument(0) else { return Err("DATA".into()) };
    let level = argument(1).unwrap_or("both");
    let kinds = argument(2).unwrap_or("text");
    if !["index", "table", "both"].contains(&level) || !["text", "words", "all"].contains(&kinds) {
        return Err("DATA [index|table|both] [text|words|all] [ROWS] [BATCH]".into());
    }
    let parts = IndexedParts { text: kinds != "words", words: kinds != "text" };
    let most = argument(3).map_or(Ok(usize::MAX), str::parse)?;
    let batch = argument(4).map_or(Ok(16_384), str::parse)?;
    let rows = read(Path::new(data), most)?;
    let bytes: usize = rows.iter().map(|row| row.title.len() + row.text.len() + 1).sum();
    let megabytes = bytes as f64 / 1e6;
    println!("{} rows, {megabytes:.1} MB", rows.len());
    if level != "table" {
        index(&rows, batch, parts, megabytes)?;
    }
    if level != "index" {
        table(&rows, batch, parts, megabytes)?;
    }
    Ok(())
}

fn read(data: &Path, most: usize) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for path in wiki_files(data)? {
        for line in lines(&path)?.take(most - rows.len()) {
            let line = line?;
            let owned = |name| text(&line, name).to_owned();
            rows.push(Row { title: owned("title"), text: owned("text") });
        }
    }
    Ok(rows)
}

/// Processor time of this thread.
fn thread_time() -> Outcome<Duration> {
    let line = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(line.split(' ').next().unwrap_or_default().parse()?))
}

/// Processor time of the process, ended threads included.
fn process_time() -> Outcome<Duration> {
    let line = fs::read_to_string("/proc/self/stat")?;
    let behind = line.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| behind.split_whitespace().nth(at).unwrap_or_default().parse::<u64>();
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

fn print_cost(what: &str, megabytes: f64, time: Duration) {
    let seconds = time.as_secs_f64();
    println!("{what:24} {seconds:7.2} s CPU  {:7.1} MB/s a core", megabytes / seconds);
}

fn index(rows: &[Row], batch: usize, parts: IndexedParts, megabytes: f64) -> Outcome<()> {
    let analyzer = WordsDef::new(1, vec![0, 1], &Settings::default(), Vec::new())?.analyzer()?;
    let text = TextSpec { id: 1, normalization: Normalization::default() };
    let words = WordsSpec { id: 2, fields: 2, analyzer };
    let spec = SegmentSpec {
        texts: parts.text.then_some(text).into_iter().collect(),
        words: parts.words.then_some(words).into_iter().collect(),
        ..SegmentSpec::default()
    };
    let (mut segments, mut id) = (Vec::new(), 0u64);
    let (mut adding, mut finishing) = (Duration::ZERO, Duration::ZERO);
    let mut sum = crc32fast::Hasher::new();
    for rows in rows.chunks(batch) {
        let begun = thread_time()?;
        let mut builder = SegmentBuilder::new(&spec);
        builder.reserve_text(rows.iter().map(|row| row.title.len() + row.text.len() + 1).sum());
        for row in rows {
            id += 1;
            let joined = [row.title.as_str(), row.text.as_str()].join(" ");
            let (texts, fields) = (vec![joined.as_str()], vec![&*row.title, &*row.text]);
            builder.add(&Document {
                key: &id.to_be_bytes(),
                columns: &[],
                texts: if parts.text { std::slice::from_ref(&texts) } else { &[] },
                words: if parts.words { std::slice::from_ref(&fields) } else { &[] },
                paths: &PathKeys::default(),
            })?;
        }
        let added = thread_time()?;
        let segment = builder.finish()?;
        adding += added - begun;
        finishing += thread_time()? - added;
        sum.update(&segment.bytes()?);
        segments.push(Arc::new(segment));
    }
    println!("{} segments, checksum {:08x}", segments.len(), sum.finalize());
    print_cost("adding", megabytes, adding);
    print_cost("finishing", megabytes, finishing);
    let begun = thread_time()?;
    let inputs: Vec<MergeInput> = segments
        .into_iter()
        .map(|segment| MergeInput { segment, deleted: None, paths: Vec::new() })
        .collect();
    let merged = merge(&inputs, &spec)?;
    let merging = thread_time()? - begun;
    print_cost("merging", megabytes, merging);
    print_cost("index", megabytes, adding + finishing + merging);
    print_sizes(&merged)
}

fn print_sizes(segment: &Segment) -> Outcome<()> {
    let sections = segment.section_sizes();
    let each = sections.iter().map(|(name, id, bytes)| format!("{name}{id} {bytes}"));
    println!("{}", each.collect::<Vec<_>>().join(" "));
    println!("checksum {:08x}", crc32fast::hash(&segment.bytes()?));
    Ok(())
}

fn table_schema(parts: IndexedParts) -> Outcome<Schema> {
    let text = TextDef {
        id: 1,
        columns: vec![1, 2],
        delimiter: Some(" ".to_owned()),
        normalization: Normalization::default(),
    };
    let words = || WordsDef::new(1, vec![1, 2], &Settings::default(), Vec::new());
    let words = if parts.words { Some(words()?) } else { None };
    Ok(schema(parts.text.then_some(text).into_iter().collect(), words))
}

fn table(rows: &[Row], batch: usize, parts: IndexedParts, megabytes: f64) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let database = Database::open(directory.path().join("data").as_path(), Options::default())?;
    database.create_table(table_schema(parts)?)?;
    let begun = (process_time()?, Instant::now());
    let pipeline = database.pipeline();
    let mut under_way = std::collections::VecDeque::new();
    let mut id = 0;
    for rows in rows.chunks(batch) {
        let changes = rows.iter().map(|row| {
            id += 1;
            let text = |text: &String| Value::Text(Arc::from(text.as_str()));
            Change::Put(vec![Value::Uint(id), text(&row.title), text(&row.text)])
        });
        let tables = vec![TableChanges { table: Arc::from(TABLE), changes: changes.collect() }];
        let pending = pipeline.submit(ChangeBatch { tables, positions: Vec::new() })?;
        under_way.push_back(pending);
        if under_way.len() > 3 {
            under_way.pop_front().map_or(Ok(()), |one| one.wait().map(drop))?;
        }
    }
    under_way.into_iter().try_for_each(|one| one.wait().map(drop))?;
    database.apply(ChangeBatch::default())?;
    let applied = process_time()?;
    print_cost("table: apply", megabytes, applied - begun.0);
    database.checkpoint()?;
    let written = process_time()?;
    print_cost("table: checkpoint", megabytes, written - applied);
    println!("{} segments", database.statistics(TABLE)?.segments);
    database.optimize(Some(TABLE))?;
    let ended = process_time()?;
    print_cost("table: optimize", megabytes, ended - written);
    print_cost("table", megabytes, ended - begun.0);
    println!("{:.1} s by the clock", begun.1.elapsed().as_secs_f64());
    Ok(database.close()?)
}
