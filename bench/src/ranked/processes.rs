//! Experiment E10 over processes: the rows of one table are divided among several Remora servers
//! and queried through a distributed table of one more server. The answers must be the same as
//! those of one table with all rows.

use anyhow::Result;

use super::{
    answers::{self, Agreement, SearchTarget},
    queries::{Kind, Query},
    servers::{Files, Server, TABLE},
};

/// The numbers of servers among which rows are divided, with their names in the report.
const PROCESSES: [(usize, &str); 3] = [(2, "2-processes"), (3, "3-processes"), (8, "8-processes")];
/// The distributed table.
const PARTS: &str = "parts";
/// The timeout for the answers of all servers, in milliseconds. It is long because all processes
/// share a machine.
const TIMEOUT_MS: u32 = 60_000;

/// What is queried, and where answers are written.
pub struct ComparisonSettings<'a> {
    /// The query kinds.
    pub kinds: &'a [Kind],
    /// The queries.
    pub queries: &'a [Query],
    /// The statements' ranker.
    pub ranker: &'a str,
    /// The directory of answers.
    pub answers: &'a std::path::Path,
}

/// Compares the answers of `whole`, which has all rows in one table, with those of the same rows
/// divided among 2, 3 and 8 servers.
pub fn compare(
    files: &Files,
    whole: &Server,
    asked: &ComparisonSettings<'_>,
) -> Result<Vec<Agreement>> {
    let mut agreements = Vec::new();
    for (count, label) in PROCESSES {
        eprintln!("loading {count} servers");
        let mut parts = Vec::with_capacity(count);
        for part in 0..count {
            files.load_part(part, count)?;
            parts.push(files.start_part(part, count)?);
        }
        let addresses: Vec<String> = parts.iter().map(Server::address).collect();
        let front = files.start_front(count, &addresses)?;
        let agents: String =
            addresses.iter().map(|address| format!(" agent='{address}:{TABLE}'")).collect();
        front.connect()?.count(&format!(
            "CREATE TABLE {PARTS} type='distributed'{agents} agent_query_timeout='{TIMEOUT_MS}'"
        ))?;
        let options = format!("ranker={}", asked.ranker);
        let side =
            |server, index, label| SearchTarget { server, index, options: options.clone(), label };
        for &kind in asked.kinds {
            eprintln!("comparing {} of {count} servers", kind.name());
            let sides = [side(whole, TABLE, "one-process"), side(&front, PARTS, label)];
            agreements.extend(answers::compare(kind, asked.queries, &sides, asked.answers)?);
        }
    }
    Ok(agreements)
}
