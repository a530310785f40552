//! Remora's benchmarks: answers are checked and times measured, next to its rivals in the same run on the same machine.
//!
//! ```text
//! cargo run --release -p bench -- search
//! cargo run --release -p bench --features rivals -- search --rows 1100000 --rivals
//! cargo run --release -p bench --features rivals -- search --rivals --queries substrings --rival-queries substrings
//! cargo run --release -p bench -- corpus-check
//! cargo run --release -p bench -- lookup
//! cargo run --release -p bench -- many-keys
//! cargo run --release -p bench -- documents
//! cargo run --release -p bench -- documents --memory-mib 100
//! cargo run --release -p bench -- ranked --rows 1900000
//! cargo run --release -p bench -- ranked --short
//! cargo run --release -p bench -- hostile
//! cargo run --release -p bench -- small-queries
//! cargo run --release -p bench -- tpcc --server mysql97 --terminals 2
//! cargo run --release -p bench -- tpcc-reads
//! cargo run --release -p bench -- app --scale 0.1
//! cargo run --release -p bench -- app --indexes --scale 0.2
//! cargo run --release -p bench -- sysbench --threads 1,8
//! cargo run --release -p bench -- replication --server mysql97 --seconds 30 --rows 100000
//! ```
//! Servers and loaded rivals are kept in `${XDG_CACHE_HOME:-~/.cache}/remora-bench`; `bench/scripts` sets up what they
//! need besides Cargo.

mod answer;
mod app;
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
mod server_group;
mod small_queries;
mod substrings;
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

/// Measures Remora, and other servers next to it.
#[derive(Parser)]
struct CommandLine {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// Full-text search on real text. Answers are compared, then times are measured.
    Search(Box<suite::SearchOptions>),
    /// Compares generated rows with real rows that were held out.
    CorpusCheck {
        /// Directory with JSON Lines files, plain or compressed with zstd. Default: the environment variable
        /// REMORA_BENCH_DATA, or shared/data next to the work tree.
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Lookups of single rows by key, by many clients at the same time.
    Lookup(lookup::LookupOptions),
    /// Reads of many rows by a list of keys, in all forms that SQL has for such a list.
    #[command(alias = "manykeys")]
    ManyKeys(many_keys::ManyKeysOptions),
    /// JSON documents in this process: the benchmark of tiedot.
    Documents(documents::DocumentOptions),
    /// Ranked keyword search next to Sphinx: ids and weights are compared, then times are measured.
    Ranked(Box<ranked::RankedOptions>),
    /// Statements that could cost much more than their length, and statements that never end.
    Hostile(hostile::HostileOptions),
    /// Different queries over small tables: the cost of parsing and planning.
    SmallQueries(small_queries::SmallQueryOptions),
    /// Typical statements of an application with the usual indexes, next to other servers.
    App(Box<app::AppOptions>),
    /// The read-only workloads of sysbench, run by sysbench itself.
    Sysbench(Box<sysbench::SysbenchOptions>),
    /// Replication from a real server: apply throughput, latency, and the load on the source.
    Replication(Box<replication::ReplicationOptions>),
    /// TPC-C's transactions on a real server. Its consistency conditions are checked before and after.
    Tpcc(tpcc::TpccOptions),
    /// TPC-C's Stock-Level, a join by key and the twelve consistency conditions, next to other servers.
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
