//! tiedot's benchmark over HTTP: the same requests to a tiedot that runs at an address and to Remora's listener for
//! tiedot's clients. Before anything is measured, both must answer alike.

mod client;
mod server;

use std::{
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value as Json, json};

use self::{client::HttpClient, server::TiedotServer};
use super::{DocumentOptions, PATHS, sample::Sample};
use crate::{measure::MeasuredProcess, random::SplitMix64, suite::WorkDirectory, table::Table};

/// The collection, which must not exist.
const COLLECTION: &str = "remora_bench";
/// Documents whose answers are compared.
const COMPARED: usize = 300;

/// One phase at one server.
struct ServedPhase {
    name: &'static str,
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    /// CPU time of the server; `None` if its process is unknown.
    cpu_us: Option<f64>,
}

/// A server under test.
struct Served<'s> {
    address: &'s str,
    process: MeasuredProcess,
}

/// Runs the comparison with the tiedot at this address.
pub(super) fn compare(options: &DocumentOptions, address: &str) -> Result<()> {
    let directory = WorkDirectory::new()?;
    let own = TiedotServer::start(&directory.path().join("data"))?;
    let servers = [
        Served { address, process: MeasuredProcess::Unknown },
        Served { address: own.address(), process: own.process() },
    ];
    let answers: Vec<Vec<Json>> =
        servers.iter().map(|server| answers(server.address)).collect::<Result<_>>()?;
    for (theirs, ours) in answers[0].iter().zip(&answers[1]) {
        ensure!(theirs == ours, "the servers answer differently:\n{theirs}\n{ours}");
    }
    println!("{} answers are equal", answers[0].len());
    let mut table = Table::new(&[
        "phase",
        "tiedot, per second",
        "p50 us",
        "p99 us",
        "Remora, per second",
        "p50 us",
        "p99 us",
        "its CPU us",
    ]);
    let phases: Vec<Vec<ServedPhase>> =
        servers.iter().map(|server| measure(server, options)).collect::<Result<_>>()?;
    for (theirs, ours) in phases[0].iter().zip(&phases[1]) {
        let of = |phase: &ServedPhase| {
            [phase.per_second, phase.p50_us, phase.p99_us].map(|figure| format!("{figure:.0}"))
        };
        let cpu = ours.cpu_us.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.1}"));
        let cells = [vec![ours.name.to_owned()], of(theirs).into(), of(ours).into(), vec![cpu]];
        table.row(cells.concat());
    }
    println!("{table}");
    own.stop()
}

/// Makes the collection with the indexes of tiedot's benchmark.
fn create(client: &mut HttpClient) -> Result<()> {
    client.expect(201, &["create"], &[("col", COLLECTION)], None)?;
    for path in PATHS {
        let path = path.replace('.', ",");
        client.expect(201, &["index"], &[("col", COLLECTION), ("path", &path)], None)?;
    }
    Ok(())
}

/// What a server answers: documents by the order in which they were inserted, because ids differ.
fn answers(address: &str) -> Result<Vec<Json>> {
    let mut client = HttpClient::connect(address)?;
    create(&mut client)?;
    let mut random = SplitMix64::new(11);
    let mut ids = Vec::new();
    for _ in 0..COMPARED {
        ids.push(insert(&mut client, &Sample::new(&mut random, 100))?);
    }
    let col = ("col", COLLECTION);
    client.expect(200, &["delete"], &[col, ("id", &ids[3])], None)?;
    let changed = serde_json::to_string(&Sample::new(&mut random, 100))?;
    client.expect(200, &["update"], &[col, ("id", &ids[4])], Some(&changed))?;
    let mut answers = Vec::new();
    for id in ids.iter().filter(|id| **id != ids[3]) {
        let text = client.expect(200, &["get"], &[col, ("id", id)], None)?;
        answers.push(serde_json::from_str(&text)?);
    }
    let place = |id: &String| ids.iter().position(|known| known == id);
    for number in 0..100 {
        for query in [
            query(&mut random, 100),
            json!({"has": ["strs"]}),
            json!({"eq": number, "in": ["ints"]}),
        ] {
            let query = query.to_string();
            let text = client.expect(200, &["query"], &[col, ("q", &query)], None)?;
            let found: serde_json::Map<String, Json> = serde_json::from_str(&text)?;
            let mut places = found.keys().map(place).collect::<Option<Vec<usize>>>();
            let places = places.as_mut().context("an id that was not given")?;
            places.sort_unstable();
            let count = client.expect(200, &["count"], &[col, ("q", &query)], None)?;
            ensure!(count.trim() == places.len().to_string(), "a count of {count}: {query}");
            answers.push(json!([query, places]));
        }
    }
    client.expect(200, &["drop"], &[col], None)?;
    Ok(answers)
}

fn insert(client: &mut HttpClient, document: &Sample) -> Result<String> {
    let text = serde_json::to_string(document)?;
    let id = client.expect(201, &["insert"], &[("col", COLLECTION)], Some(&text))?;
    Ok(id.trim().to_owned())
}

/// tiedot's query, as its clients write it.
fn query(random: &mut SplitMix64, count: u64) -> Json {
    let mut number = || random.below(count as usize) as i64;
    let (one, other, from) = (number(), number(), number());
    json!([
        {"c": [{"eq": one, "in": ["nested", "nested", "int"]}, {"eq": other, "in": ["ints"]}]},
        {"int-from": from, "int-to": from + 2, "in": ["ints"]},
    ])
}

/// Runs all phases at one server.
fn measure(server: &Served<'_>, options: &DocumentOptions) -> Result<Vec<ServedPhase>> {
    let mut client = HttpClient::connect(server.address)?;
    create(&mut client)?;
    let ids = Mutex::new(Vec::new());
    let count = options.count;
    let insert = |client: &mut HttpClient, random: &mut SplitMix64| {
        let id = insert(client, &Sample::new(random, count))?;
        ids.lock().map_err(|_| anyhow!("a thread panicked"))?.push(id);
        Ok(())
    };
    let mut phases = vec![phase(server, "insert", options, &insert)?];
    let ids = ids.into_inner()?;
    let id = |random: &mut SplitMix64| ids[random.below(ids.len())].as_str();
    let col = ("col", COLLECTION);
    phases.push(phase(server, "read", options, &|client, random| {
        client.expect(200, &["get"], &[col, ("id", id(random))], None).map(drop)
    })?);
    phases.push(phase(server, "lookup", options, &|client, random| {
        let query = query(random, count).to_string();
        client.expect(200, &["query"], &[col, ("q", &query)], None).map(drop)
    })?);
    phases.push(phase(server, "update", options, &|client, random| {
        let document = serde_json::to_string(&Sample::new(random, count))?;
        client.expect(200, &["update"], &[col, ("id", id(random))], Some(&document)).map(drop)
    })?);
    // As in tiedot's benchmark, some were deleted before: 404 at Remora, 200 at tiedot.
    phases.push(phase(server, "delete", options, &|client, random| {
        let (status, text) = client.ask(&["delete"], &[col, ("id", id(random))], None)?;
        ensure!(matches!(status, 200 | 404), "status {status}: {text}");
        Ok(())
    })?);
    client.expect(200, &["drop"], &[col], None)?;
    Ok(phases)
}

type Operation<'o> = dyn Fn(&mut HttpClient, &mut SplitMix64) -> Result<()> + Sync + 'o;

/// Runs an operation on several connections.
fn phase(
    server: &Served<'_>,
    name: &'static str,
    options: &DocumentOptions,
    operation: &Operation<'_>,
) -> Result<ServedPhase> {
    let threads = options.threads.max(1) as u64;
    let each = options.count / threads;
    let (before, begin) = (server.process.whole(), Instant::now());
    let mut times = thread::scope(|scope| -> Result<Vec<Duration>> {
        let work = |thread: u64| {
            scope.spawn(move || -> Result<Vec<Duration>> {
                let mut client = HttpClient::connect(server.address)?;
                let mut random = SplitMix64::new(thread * 7_919 + 1);
                let mut times = Vec::with_capacity(each as usize);
                for _ in 0..each {
                    let begin = Instant::now();
                    operation(&mut client, &mut random)?;
                    times.push(begin.elapsed());
                }
                Ok(times)
            })
        };
        let threads: Vec<_> = (0..threads).map(work).collect();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| anyhow!("a thread panicked"))??);
        }
        Ok(times)
    })?;
    let wall = begin.elapsed();
    let operations = times.len().max(1) as f64;
    let spent = before.zip(server.process.whole()).map(|(before, after)| after - before);
    times.sort_unstable();
    let at = |part: usize| {
        let place = (times.len() * part / 100).min(times.len().saturating_sub(1));
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Ok(ServedPhase {
        name,
        per_second: operations / wall.as_secs_f64(),
        p50_us: at(50),
        p99_us: at(99),
        cpu_us: spent.map(|spent| spent.as_secs_f64() * 1e6 / operations),
    })
}
