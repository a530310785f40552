//! Remora's benchmarks: answers are checked and times measured, next to its rivals in the same run on the same machine.
//!
//! ```text
//! cargo run --release -p bench -- search
//! cargo run --release -p bench --features rivals -- search --rows 1100000 --rivals
//! cargo run --release -p bench -- corpus-check
//! cargo run --release -p bench -- lookup
//! cargo run --release -p bench -- many-keys
//! cargo run --release -p bench -- documents
//! cargo run --release -p bench -- documents --memory-mib 100
//! cargo run --release -p bench -- ranked --rows 1900000
//! cargo run --release -p bench -- hostile
//! cargo run --release -p bench -- small-queries
//! cargo run --release -p bench -- tpcc --server mysql97 --terminals 2
//! cargo run --release -p bench -- tpcc-reads
//! cargo run --release -p bench -- app --scale 0.1
//! cargo run --release -p bench -- sysbench --threads 1,8
//! cargo run --release -p bench -- replication --server mysql97 --seconds 30 --rows 100000
//! ```
//! Servers and loaded rivals are kept in `${XDG_CACHE_HOME:-~/.cache}/remora-bench`; `bench/scripts` sets up what they
//! need besides Cargo.

mod answer;
mod app;
mod beside;
mod corpus;
mod documents;
mod extend;
mod hostile;
mod lookup;
mod many_keys;
mod measure;
mod oracle;
mod peers;
mod queries;
mod random;
mod ranked;
mod remora;
mod replication;
mod report;
mod small_queries;
mod suite;
mod sysbench;
mod table;
mod tpcc;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The product's allocator, so that measurements in this process match it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Remora, and its rivals beside it.
#[derive(Parser)]
struct CommandLine {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// Full-text search on real text: answers are compared before times are.
    Search(Box<suite::SearchOptions>),
    /// Compares generated rows with real ones held out.
    CorpusCheck {
        /// Directory of JSON Lines files, plain or zstd.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Rows by key, one at a time, by many clients at once.
    Lookup(lookup::LookupOptions),
    /// Rows by a list of keys, by every form such a list has in SQL.
    #[command(alias = "manykeys")]
    ManyKeys(many_keys::ManyKeysOptions),
    /// JSON documents in process: tiedot's benchmark.
    Documents(documents::DocumentOptions),
    /// Ranked search by keywords, beside Sphinx: ids and weights first, then times.
    Ranked(Box<ranked::RankedOptions>),
    /// Statements that cost more than their text is long, and statements without end.
    Hostile(hostile::HostileOptions),
    /// Queries over small tables, no two alike: reading and planning.
    SmallQueries(small_queries::SmallQueryOptions),
    /// An application's ordinary statements with their usual indexes, beside real servers.
    App(Box<app::AppOptions>),
    /// The read-only workloads of sysbench, run by sysbench.
    Sysbench(Box<sysbench::SysbenchOptions>),
    /// Following a real server: applying, latency, and what it costs the source.
    Replication(Box<replication::ReplicationOptions>),
    /// Writes TPC-C's transactions to a real server and checks that its conditions hold.
    Tpcc(tpcc::TpccOptions),
    /// Stock-Level, a join by key and TPC-C's twelve conditions, beside real servers.
    TpccReads(tpcc::ReadsOptions),
}

fn main() -> Result<()> {
    match CommandLine::parse().suite {
        Suite::Search(options) => suite::search(&options),
        Suite::Lookup(options) => lookup::lookup(&options),
        Suite::ManyKeys(options) => many_keys::many_keys(&options),
        Suite::Documents(options) => documents::documents(&options),
        Suite::Ranked(options) => ranked::ranked(&options),
        Suite::Hostile(options) => hostile::hostile(&options),
        Suite::SmallQueries(options) => small_queries::small_queries(&options),
        Suite::App(options) => app::app(&options),
        Suite::Sysbench(options) => sysbench::sysbench(&options),
        Suite::Replication(options) => replication::replication(&options),
        Suite::Tpcc(options) => tpcc::tpcc(&options),
        Suite::TpccReads(options) => tpcc::reads(&options),
        Suite::CorpusCheck { data } => {
            let data = corpus::data_directory(data.as_deref())?;
            extend::corpus_check(&data, corpus::read_directory(&data)?)
        }
    }
}
