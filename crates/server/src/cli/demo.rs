//! `remora demo`: a table, some searches, and a server to try more.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{Database, Durability, SearchRequest, Selection, Value};
use remora_source::files::{
    DatabaseSink, ImportOptions, Importer, Input, KeyChoice, Reading, infer_schema,
};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    DemoOptions,
    output::{elapsed, thousands},
    serve::runtime,
};
use crate::{Error, Result, Server, open::open_with_collations, settings::Settings};

/// Short factual articles in several languages.
const SAMPLE: &[u8] = include_bytes!("../../sample/articles.jsonl");

/// The searches of the sample. For a user's file, words from it are searched.
const SEARCHES: [&str; 6] = [
    "SEARCH articles mountain FIELDS title,country,year LIMIT 5",
    "SEARCH articles 日本 FIELDS title,lang LIMIT 5",
    "SEARCH articles \"capital of\" SORT population DESC LIMIT 5 FIELDS title,population",
    "SEARCH articles (river OR island) AND NOT bridge SORT _score FIELDS title LIMIT 5",
    "COUNT articles the FILTER year < 1900",
    "FACET articles category",
];

/// Shows the demonstration and serves the table.
///
/// # Errors
/// [`Error::Io`] if the system refuses a directory, a thread, an address or a signal, [`Error::Source`] if the file
/// cannot be read or imported, [`Error::Engine`] if the database refuses.
pub fn demo(options: &DemoOptions) -> Result<ExitCode> {
    let directory = tempfile::Builder::new()
        .prefix("remora-demo-")
        .tempdir()
        .map_err(|source| Error::Io { what: "cannot make a directory".to_owned(), source })?;
    let data = directory.path().join("data");
    let settings = Settings {
        data: data.clone(),
        listen: crate::settings::Listen {
            line: "127.0.0.1:0".to_owned(),
            http: "127.0.0.1:0".to_owned(),
            sql: "127.0.0.1:0".to_owned(),
            ..crate::settings::Listen::default()
        },
        durability: Durability::None,
        ..Settings::default()
    }
    .finish()?;
    let database = open_with_collations(&data, settings.engine_options())?;
    let table = table_name(options.file.as_deref());
    load(&database, &table, options.file.as_deref())?;
    let runtime = runtime(0)?;
    let result = runtime.block_on(run(options, settings, database, &table));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result.map(|()| ExitCode::SUCCESS)
}

/// The table's name, made from the file's name.
fn table_name(file: Option<&Path>) -> String {
    let name = file.and_then(Path::file_name).and_then(|name| name.to_str());
    let stem = name.map_or("articles", |name| name.split('.').next().unwrap_or(name));
    let plain: String = stem.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if plain.is_empty() { "articles".to_owned() } else { plain }
}

fn load(database: &Database, table: &str, file: Option<&Path>) -> Result<()> {
    let input = match file {
        Some(path) => Input::new(&path.display().to_string())?,
        None => Input::from_stream("articles.jsonl", SAMPLE)?,
    };
    let mut inputs = [input];
    let start = Instant::now();
    let inferred = infer_schema(&mut inputs, table, &KeyChoice::Auto, &Reading::default())?;
    database.create_table(inferred.schema)?;
    let schema = database.schema(table)?;
    let sink = DatabaseSink::new(database);
    let report = Importer::new(&sink, Arc::clone(&schema), ImportOptions::default())
        .run(&mut inputs, &mut |_| {})?;
    let names: Vec<&str> = schema.columns.iter().map(|column| column.name.as_str()).collect();
    println!(
        "Loaded {} rows into the table '{table}' in {}.\nIts columns: {}\n",
        thousands(report.rows),
        elapsed(start.elapsed()),
        names.join(", ")
    );
    Ok(())
}

async fn run(
    options: &DemoOptions,
    settings: Settings,
    database: Database,
    table: &str,
) -> Result<()> {
    let server = Server::start(settings, database.clone(), None).await?;
    let requests = match options.file {
        None => SEARCHES.map(str::to_owned).to_vec(),
        Some(_) => searches_of(&database, table)?,
    };
    let mut asker = server.owner();
    for request in &requests {
        let start = Instant::now();
        let reply = asker.ask(request);
        let time = start.elapsed();
        println!("remora> {request}");
        println!("{}({})\n", super::shell::present(&reply), elapsed(time));
    }
    if !options.exit
        && let Some(address) = server.line_address()
    {
        print_request_examples(address, server.http_address(), table);
        wait_for_end().await?;
    }
    server.stop().await
}

fn print_request_examples(line: SocketAddr, http: Option<SocketAddr>, table: &str) {
    println!(
        "The line protocol answers on {line}. In another terminal:\n  remora shell {line}\n  \
         printf 'COUNT {table} a\\r\\n' | nc -q 1 {} {}",
        line.ip(),
        line.port()
    );
    if let Some(http) = http {
        println!(
            "HTTP answers on {http}:\n  curl -s {http}/tables/{table}/search -H \
             'Content-Type: application/json' -d '{{\"q\": \"a\", \"limit\": 2}}'"
        );
    }
    println!("\nCtrl-C ends the demonstration and removes its data.");
    let _ = std::io::stdout().flush();
}

async fn wait_for_end() -> Result<()> {
    let taken = |kind| {
        signal(kind).map_err(|source| Error::Io { what: "cannot take signals".to_owned(), source })
    };
    let mut interrupt = taken(SignalKind::interrupt())?;
    let mut terminate = taken(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Requests for a file's table: two frequent words of its newest rows, and its columns.
fn searches_of(database: &Database, table: &str) -> Result<Vec<String>> {
    let schema = database.schema(table)?;
    let request = SearchRequest {
        selection: Selection { table: table.to_owned(), ..Selection::default() },
        limit: 50,
        fields: vec!["*".to_owned()],
        ..SearchRequest::default()
    };
    let reply = database.search(&request)?;
    let texts = reply.hits.iter().flat_map(|hit| &hit.fields).filter_map(|value| match value {
        Value::Text(text) => Some(&**text),
        _ => None,
    });
    let words = frequent_words(texts);
    let title = schema
        .texts
        .first()
        .and_then(|text| schema.columns.get(*text.columns.first()?))
        .map_or(String::new(), |column| format!(" FIELDS {}", column.name));
    let mut requests = Vec::new();
    for word in words.iter().take(2) {
        requests.push(format!("COUNT {table} {word}"));
        requests.push(format!("SEARCH {table} {word} LIMIT 5{title}"));
    }
    if let [first, second, ..] = words.as_slice() {
        requests.push(format!("SEARCH {table} {first} AND {second} SORT _score LIMIT 5{title}"));
    }
    let is_key = |index: usize| schema.primary_key.contains(&index);
    let facet = schema.columns.iter().enumerate().find(|(index, c)| c.indexed && !is_key(*index));
    requests.extend(facet.map(|(_, column)| format!("FACET {table} {} LIMIT 8", column.name)));
    Ok(requests)
}

/// Words with a minimum length, the most frequent first.
fn frequent_words<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for text in texts {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let words = words.filter(|word| (5..=20).contains(&word.chars().count()));
        for word in words.map(str::to_lowercase).collect::<BTreeSet<_>>() {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut words: Vec<(u32, String)> =
        counts.into_iter().map(|(word, count)| (count, word)).collect();
    words.sort_by(|left, right| right.cmp(left));
    words.into_iter().map(|(_, word)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_words_of_a_file() {
        assert_eq!(table_name(Some(Path::new("/x/wiki-en.jsonl.zst"))), "wiki_en");
        assert_eq!(table_name(None), "articles");
        let words = frequent_words(["River and Castle", "a river", "bridges"].into_iter());
        assert_eq!(words, ["river", "castle", "bridges"]);
    }
}
