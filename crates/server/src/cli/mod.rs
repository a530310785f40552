//! The command line `remora`: one module for each mode.

mod check;
mod compare;
mod copy_progress;
mod demo;
mod dump;
mod export;
mod import;
mod line_client;
mod output;
mod serve;
mod shell;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use check::check;
pub use compare::compare;
pub use demo::demo;
pub use dump::dump;
pub use export::export;
pub use import::import;
pub use serve::serve;
pub use shell::shell;

use crate::{Error, Result};

/// The read side of MySQL, in one process: exact full-text search, counts and facets.
///
/// Try it:          remora demo
/// Load your data:  remora import --data DIR --table NAME FILES...
/// Or documents:    remora import --data DIR --collection NAME FILES...
/// Or as Sphinx:    remora import -c sphinx.conf, then remora serve -c sphinx.conf
/// Serve it:        remora serve --data DIR
/// Follow a MySQL:  remora serve --mysql mysql://user:password@host:3306/shop
/// Query it:        remora shell
#[derive(Parser)]
#[command(name = "remora", version, verbatim_doc_comment, arg_required_else_help = true)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub mode: Mode,
}

/// The modes of the command line.
#[derive(Subcommand)]
pub enum Mode {
    /// Run sample searches on built-in data or on a file, then keep serving that table.
    Demo(DemoOptions),
    /// Run a server on a data directory until SIGTERM or Ctrl-C.
    Serve(ServeOptions),
    /// Load files into a table or a collection. Formats: JSON, JSON Lines, MongoDB's extended JSON, CSV, TSV and
    /// Wikipedia's CirrusSearch dumps, plain or compressed with gzip or zstd. Also loads the indexes of a sphinx.conf
    /// and databases of tiedot.
    Import(ImportOptions),
    /// Write the rows of a table or the documents of a collection to a file or to standard output.
    Export(ExportOptions),
    /// Open a prompt for commands of the line protocol, on a running server or on a data directory.
    Shell(ShellOptions),
    /// Check a data directory: all checksums, all segments against their rows, all row counts. Exit status: 0 if
    /// nothing is wrong, 2 if something is.
    Check(CheckOptions),
    /// Save a data directory to one compressed file, load such a file, or check it.
    #[command(subcommand)]
    Dump(DumpCommand),
    /// Compare two files with answers to the same queries. Exit status: 0 if all answers are equal, 1 if some differ.
    Compare(CompareOptions),
}

/// Options of `demo`.
#[derive(Args)]
pub struct DemoOptions {
    /// The file to load. Default: a built-in sample of short articles.
    pub file: Option<PathBuf>,
    /// Exit after the searches instead of serving.
    #[arg(long)]
    pub exit: bool,
}

/// Options of `serve`.
#[derive(Args)]
pub struct ServeOptions {
    /// The settings file: a remora.toml, a MygramDB file (.yaml, .yml or .json) or a sphinx.conf (any .conf).
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The data directory. It is created if it does not exist. Default: remora-data. Overrides the settings file.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The address of the line protocol. Default: 127.0.0.1:11016. Overrides the settings file.
    #[arg(long, value_name = "HOST:PORT")]
    pub line: Option<String>,
    /// The address of HTTP. Default: 127.0.0.1:9308. An empty value turns HTTP off. Overrides the settings file.
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// The address of the MySQL protocol. Default: 127.0.0.1:9306. An empty value turns it off. Overrides the
    /// settings file.
    #[arg(long, value_name = "HOST:PORT")]
    pub sql: Option<String>,
    /// Replicate from this MySQL or MariaDB server: mysql://user:password@host:3306/database. Its tables are copied and
    /// kept up to date. The password can also be given in the environment variable REMORA_MYSQL_PASSWORD.
    #[arg(long, value_name = "URL")]
    pub mysql: Option<String>,
    /// The tables to replicate, separated by commas: names, or patterns with * and ?. Default: all tables of the
    /// database.
    #[arg(long, value_name = "TABLES", value_delimiter = ',', requires = "mysql")]
    pub tables: Vec<String>,
    /// Check the settings and exit.
    #[arg(short, long)]
    pub test: bool,
}

/// Options of `import`.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("target")))]
pub struct ImportOptions {
    /// Load the indexes of this sphinx.conf. The commands and queries of its sources are run. Default data directory:
    /// the folder 'remora' next to the files of the indexes.
    #[arg(
        short,
        long,
        value_name = "SPHINX.CONF",
        conflicts_with_all = ["to", "token", "user", "table", "key", "schema", "on_error", "skip_bad", "tiedot"]
    )]
    pub config: Option<PathBuf>,
    /// Load the collections of this database directory of tiedot, with their ids and indexes. tiedot must not have it
    /// open.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["to", "token", "user", "table", "collection", "key", "schema", "format", "flatten", "with_ids", "text_ids"]
    )]
    pub tiedot: Option<PathBuf>,
    /// Load into this data directory. It is created if it does not exist.
    #[arg(long, value_name = "DIR", group = "target")]
    pub data: Option<PathBuf>,
    /// Load into the server at this address, by its line protocol.
    #[arg(long, value_name = "HOST:PORT", group = "target")]
    pub to: Option<String>,
    /// The admin token of the server that --to names. It can also be given in the environment variable
    /// REMORA_AUTH_ADMIN_TOKEN.
    #[arg(long, value_name = "TOKEN", requires = "to")]
    pub token: Option<String>,
    /// The user for the login at the server that --to names. The password is read from the environment variable
    /// REMORA_PASSWORD.
    #[arg(long, value_name = "NAME", requires = "to", conflicts_with = "token")]
    pub user: Option<String>,
    /// The table. If it does not exist, it is created from --schema, or from the first rows without --schema.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["config", "collection", "tiedot"])]
    pub table: Option<String>,
    /// The collection, which stores documents unchanged. It is created if it does not exist.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "config", "schema", "flatten"])]
    pub collection: Option<String>,
    /// The format of the files. Default: detected from their first bytes and their names.
    #[arg(long, value_enum, conflicts_with = "config")]
    pub format: Option<ImportFormat>,
    /// The primary key: a column, or several separated by commas. A dotted path names a member of a nested object.
    /// Default: a column that looks like a key, or else a new column _row with row numbers. For a collection: the path
    /// to the id of a document, which is an integer, or a text with --text-ids. Default there: generated integers.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', visible_alias = "primary-key")]
    pub key: Vec<String>,
    /// Create a column for each member of nested objects, named by its dotted path, instead of one JSON column.
    #[arg(long, conflicts_with = "config")]
    pub flatten: bool,
    /// Each document has its id next to it, as 'remora export --with-ids' writes it: {"id": 7, "doc": {...}}.
    #[arg(long, requires = "collection", conflicts_with = "key")]
    pub with_ids: bool,
    /// A new collection has texts of up to 512 bytes as ids instead of integers. The ids come from --key or --with-ids.
    #[arg(long, requires = "collection")]
    pub text_ids: bool,
    /// The file with the table's definition, in TOML or JSON: name, primary_key, columns and texts, as in a section
    /// [tables.NAME] of a remora.toml. Default: inferred from the first rows.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// What to do with a malformed row or document. If it stops the import, nothing of its batch is stored: up to
    /// 16,384 rows or 16 MiB.
    #[arg(long, value_enum, default_value_t = OnError::Stop)]
    pub on_error: OnError,
    /// Report and skip up to this many malformed rows, and stop at the next one.
    #[arg(long, value_name = "N", conflicts_with = "on_error")]
    pub skip_bad: Option<u64>,
    /// The files, read in this order. - is standard input. An interrupted import of the same file continues where it
    /// stopped. With -c: the names of indexes; default: all; their tables are replaced. With --tiedot: the names of
    /// collections; default: all.
    #[arg(required_unless_present_any = ["config", "tiedot"])]
    pub files: Vec<PathBuf>,
}

impl ImportOptions {
    /// The name of the table or collection; empty for a sphinx.conf or a tiedot database.
    fn table(&self) -> &str {
        self.table.as_deref().or(self.collection.as_deref()).unwrap_or_default()
    }

    /// The number of malformed records that are skipped.
    fn skip_bad(&self) -> u64 {
        match self.on_error {
            OnError::Skip => u64::MAX,
            OnError::Stop => self.skip_bad.unwrap_or(0),
        }
    }
}

/// The format of imported files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// One JSON object per line.
    Jsonl,
    /// An array of JSON objects, or JSON objects one after the other.
    Json,
    /// MongoDB's extended JSON, as mongoexport writes it.
    Mongo,
    /// Comma-separated values with a header line.
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
    /// A CirrusSearch dump of Wikipedia.
    Cirrus,
}

/// What to do with a malformed row or document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Stop there. Batches that were stored before stay.
    Stop,
    /// Report it and continue.
    Skip,
}

/// Options of `export`.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("source").required(true)))]
pub struct ExportOptions {
    /// Export from this data directory. No server may have it open.
    #[arg(long, value_name = "DIR", group = "source")]
    pub data: Option<PathBuf>,
    /// Export from the server at this address, by its line protocol.
    #[arg(long, value_name = "HOST:PORT", group = "source")]
    pub from: Option<String>,
    /// The admin token of the server that --from names. It can also be given in the environment variable
    /// REMORA_AUTH_ADMIN_TOKEN.
    #[arg(long, value_name = "TOKEN", requires = "from")]
    pub token: Option<String>,
    /// The user for the login at the server that --from names. The password is read from the environment variable
    /// REMORA_PASSWORD.
    #[arg(long, value_name = "NAME", requires = "from", conflicts_with = "token")]
    pub user: Option<String>,
    /// The table. A collection is exported as rows of an id and a document.
    #[arg(long, value_name = "NAME", required_unless_present = "collection")]
    pub table: Option<String>,
    /// The collection. Only its documents are exported, without --with-ids.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "columns"])]
    pub collection: Option<String>,
    /// The format of the output. Default: detected from the file name, or else jsonl.
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// The columns to write, in this order, separated by commas. Default: all.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Export only rows that satisfy this condition. It names columns, or dotted paths of a collection:
    /// "year >= 1990 AND (country = 'NO' OR NOT tags IN ('old'))".
    #[arg(long = "where", visible_alias = "filter", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Indent JSON and write it over several lines.
    #[arg(long)]
    pub pretty: bool,
    /// Write the id next to each document, as 'remora import --with-ids' reads it: {"id": 7, "doc": {...}}.
    #[arg(long, requires = "collection")]
    pub with_ids: bool,
    /// The file to write. It is compressed if its name ends in .gz or .zst, and gets its name when it is whole. Default,
    /// also for -: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The format of exported rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line.
    Jsonl,
    /// An array of JSON objects.
    Json,
    /// MongoDB's extended JSON, one object per line, as mongoimport reads it.
    Mongo,
    /// Comma-separated values with a header line.
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
}

/// Options of `shell`.
#[derive(Args)]
pub struct ShellOptions {
    /// The address of the server's line protocol.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:11016")]
    pub server: String,
    /// Connect to this Unix socket of the server instead of an address.
    #[arg(short, long, value_name = "PATH", conflicts_with = "data")]
    pub socket: Option<PathBuf>,
    /// Open this data directory instead of a server. No server may have it open.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Log in as this user. The password is read from the environment variable REMORA_PASSWORD.
    #[arg(short, long, value_name = "NAME", conflicts_with = "data")]
    pub user: Option<String>,
    /// Run this command and exit. Can be given several times.
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    pub execute: Vec<String>,
}

/// Options of `check`.
#[derive(Args)]
pub struct CheckOptions {
    /// The data directory. No server may have it open.
    pub dir: PathBuf,
    /// Rebuild damaged indexes from the rows. What cannot be rebuilt is lost.
    #[arg(long)]
    pub repair: bool,
}

/// The commands for dumps.
#[derive(Subcommand)]
pub enum DumpCommand {
    /// Save a data directory to a file.
    Save {
        /// The data directory. No server may have it open. A running server saves itself by the command DUMP SAVE.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The file to write.
        file: PathBuf,
    },
    /// Load a file into a data directory. All tables of the data directory are replaced.
    Load {
        /// The data directory. It is created if it does not exist.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The file to read.
        file: PathBuf,
    },
    /// Print the contents of a dump: its tables and positions.
    Info {
        /// The dump.
        file: PathBuf,
    },
    /// Read a whole dump and verify its checksums.
    Verify {
        /// The dump.
        file: PathBuf,
    },
}

/// Options of `compare`.
#[derive(Args)]
pub struct CompareOptions {
    /// The reference answers, as JSON Lines: `{"query":"text","total_found":2,"rows":[[id,weight],[id,weight]]}`. The
    /// first 100 rows of each answer are compared.
    #[arg(value_name = "A")]
    pub reference: PathBuf,
    /// The answers to compare: the same queries in the same order.
    #[arg(value_name = "B")]
    pub other: PathBuf,
}

/// Refuses a path that is not a data directory; opening it would create one there.
fn require_data_directory(path: &Path) -> Result<()> {
    let is_empty = std::fs::read_dir(path).map(|mut entries| entries.next().is_none());
    match is_empty {
        Ok(false) => Ok(()),
        _ => Err(Error::Usage(format!(
            "{} is no data directory; name the one that 'remora import --data' or 'remora serve \
             --data' made",
            path.display()
        ))),
    }
}
