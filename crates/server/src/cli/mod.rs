//! The command line `remora`: one module a mode.

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
/// Ask it:          remora shell
#[derive(Parser)]
#[command(name = "remora", version, verbatim_doc_comment, arg_required_else_help = true)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub mode: Mode,
}

/// What the command line can do.
#[derive(Subcommand)]
pub enum Mode {
    /// Show what Remora does, on a sample or on a file of yours, and keep serving it.
    Demo(DemoOptions),
    /// Serve a data directory until SIGTERM.
    Serve(ServeOptions),
    /// Load files into a table or a collection: JSON, JSON Lines, mongoexport's, CSV, TSV or a Wikipedia CirrusSearch
    /// dump, plain or compressed with gzip or zstd; or the indexes of a sphinx.conf, or a database of tiedot's.
    Import(ImportOptions),
    /// Write a table's rows, or a collection's documents, to a file or to standard output.
    Export(ExportOptions),
    /// Ask a running server, or a data directory without a server, at a prompt.
    Shell(ShellOptions),
    /// Verify a data directory: every checksum, every segment against the rows, every count.
    Check(CheckOptions),
    /// Save a data directory to one compressed file, and load it back.
    #[command(subcommand)]
    Dump(DumpCommand),
    /// Tell how far the answers to the same queries agree, as two files have them: 0 if all are equal, 1 if some differ.
    Compare(CompareOptions),
}

/// Options of `demo`.
#[derive(Args)]
pub struct DemoOptions {
    /// A file to load instead of the sample of short articles.
    pub file: Option<PathBuf>,
    /// Leave after the searches instead of serving.
    #[arg(long)]
    pub exit: bool,
}

/// Options of `serve`.
#[derive(Args)]
pub struct ServeOptions {
    /// Settings: a remora.toml, a MygramDB .yaml, .yml or .json, or a sphinx.conf (any .conf).
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory; made if it is missing. Overrides the settings file.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address of the line protocol, HOST:PORT. Overrides the settings file.
    #[arg(long, value_name = "HOST:PORT")]
    pub line: Option<String>,
    /// Address of HTTP, HOST:PORT; empty listens nowhere. Overrides the settings file.
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Address of the MySQL protocol, HOST:PORT; empty listens nowhere. Overrides the settings file.
    #[arg(long, value_name = "HOST:PORT")]
    pub sql: Option<String>,
    /// Follow this MySQL or MariaDB: mysql://user:password@host:3306/database. Its tables are copied
    /// and kept up to date. The environment variable REMORA_MYSQL_PASSWORD may hold the password.
    #[arg(long, value_name = "URL")]
    pub mysql: Option<String>,
    /// The tables to follow, with commas between: names, or patterns with * and ?. All of the
    /// database if not given.
    #[arg(long, value_name = "TABLES", value_delimiter = ',', requires = "mysql")]
    pub tables: Vec<String>,
    /// Check the settings and leave.
    #[arg(short, long)]
    pub test: bool,
}

/// Options of `import`.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("target")))]
pub struct ImportOptions {
    /// Load the indexes of this sphinx.conf from their sources, whose commands and queries are run. The data
    /// directory is that of --data, or the folder 'remora' beside the indexes' files.
    #[arg(
        short,
        long,
        value_name = "SPHINX.CONF",
        conflicts_with_all = ["to", "token", "user", "table", "key", "schema", "on_error", "skip_bad", "tiedot"]
    )]
    pub config: Option<PathBuf>,
    /// Load the collections of this database directory of tiedot's, with their ids and indexes. No tiedot may have it
    /// open.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["to", "token", "user", "table", "collection", "key", "schema", "format", "flatten", "with_ids", "text_ids"]
    )]
    pub tiedot: Option<PathBuf>,
    /// Load into this data directory; made if it is missing.
    #[arg(long, value_name = "DIR", group = "target")]
    pub data: Option<PathBuf>,
    /// Load into the server that runs here.
    #[arg(long, value_name = "HOST:PORT", group = "target")]
    pub to: Option<String>,
    /// The server's admin token, for --to. The environment variable REMORA_AUTH_ADMIN_TOKEN does
    /// the same.
    #[arg(long, value_name = "TOKEN", requires = "to")]
    pub token: Option<String>,
    /// A user of the server, for --to. The environment variable REMORA_PASSWORD holds the password.
    #[arg(long, value_name = "NAME", requires = "to", conflicts_with = "token")]
    pub user: Option<String>,
    /// The table. Made if it is missing, from --schema or from what the first rows hold.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["config", "collection", "tiedot"])]
    pub table: Option<String>,
    /// The collection, for documents as they are. Made if it is missing.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "config", "schema", "flatten"])]
    pub collection: Option<String>,
    /// What the files are: told by their first bytes and by their names if not given.
    #[arg(long, value_enum, conflicts_with = "config")]
    pub format: Option<ImportFormat>,
    /// The column, or the columns with commas between, that name a row; a dotted path leads into nested objects. Guessed if
    /// not given, and if nothing looks like a key, rows are numbered in a column _row. Of a collection the path to the
    /// document's id, an integer or, where ids are texts, a text; integers are made if not given.
    #[arg(long, value_name = "PATHS", value_delimiter = ',', visible_alias = "primary-key")]
    pub key: Vec<String>,
    /// Make columns of the members of nested objects too, named by their dotted paths, instead of JSON.
    #[arg(long, conflicts_with = "config")]
    pub flatten: bool,
    /// The documents of the collection stand beside their ids, as 'remora export --with-ids' writes them:
    /// {"id": 7, "doc": {...}}.
    #[arg(long, requires = "collection", conflicts_with = "key")]
    pub with_ids: bool,
    /// The ids of a collection that is made are texts of up to 512 bytes, which --key leads to or --with-ids has, instead
    /// of numbers.
    #[arg(long, requires = "collection", conflicts_with = "to")]
    pub text_ids: bool,
    /// The table's definition in TOML or JSON: name, primary_key, columns and texts, as a section
    /// [tables.NAME] of a remora.toml has them. Without it the first rows tell.
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// What to do with a line or document that is no row. Nothing of the batch that it is in is stored by an import
    /// that it stops: up to 16,384 rows or 16 MiB.
    #[arg(long, value_enum, default_value_t = OnError::Stop)]
    pub on_error: OnError,
    /// Report and pass over up to so many of them, and stop at the next.
    #[arg(long, value_name = "N", conflicts_with = "on_error")]
    pub skip_bad: Option<u64>,
    /// The files, read one after the other; - is the standard input. A file that was read before goes on where it stopped.
    /// With -c: the names of indexes, all if none is given; what a table held before is replaced. With --tiedot: the
    /// names of collections, all if none is given.
    #[arg(required_unless_present_any = ["config", "tiedot"])]
    pub files: Vec<PathBuf>,
}

impl ImportOptions {
    /// The table or the collection, one of which is named unless a sphinx.conf is, or a database of tiedot's.
    fn table(&self) -> &str {
        self.table.as_deref().or(self.collection.as_deref()).unwrap_or_default()
    }

    /// How many malformed records are passed over.
    fn skip_bad(&self) -> u64 {
        match self.on_error {
            OnError::Skip => u64::MAX,
            OnError::Stop => self.skip_bad.unwrap_or(0),
        }
    }
}

/// What an imported file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// One JSON object a line.
    Jsonl,
    /// An array of JSON objects, or objects one behind the other, over any lines.
    Json,
    /// The same in MongoDB's extended JSON, as mongoexport writes it.
    Mongo,
    /// Comma-separated values with a header line.
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
    /// A dump of Wikipedia's CirrusSearch.
    Cirrus,
}

/// What to do with a line or document that is no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Stop there; what was read before is kept.
    Stop,
    /// Report it and go on.
    Skip,
}

/// Options of `export`.
#[derive(Args)]
pub struct ExportOptions {
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// The table. Of a collection these are rows of an id and a document.
    #[arg(long, value_name = "NAME", required_unless_present = "collection")]
    pub table: Option<String>,
    /// The collection, for its documents alone.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "columns"])]
    pub collection: Option<String>,
    /// How rows are written: told by the name of the file if not given, else jsonl.
    #[arg(long, value_enum)]
    pub format: Option<ExportFormat>,
    /// The columns to write, with commas between, in this order. All if not given.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Only rows for which this holds, on columns; of a collection on dotted paths:
    /// "year >= 1990 AND (country = 'NO' OR NOT tags IN ('old'))".
    #[arg(long = "where", visible_alias = "filter", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Write JSON over several lines, for people.
    #[arg(long)]
    pub pretty: bool,
    /// Write each document of the collection beside its id, {"id": 7, "doc": {...}}, as 'remora import --with-ids' reads it.
    #[arg(long, requires = "collection")]
    pub with_ids: bool,
    /// The file to write, compressed if it ends in .gz or .zst; standard output if not given or -.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How exported rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a line.
    Jsonl,
    /// An array of JSON objects.
    Json,
    /// MongoDB's extended JSON, one object a line, as mongoimport reads it.
    Mongo,
    /// Comma-separated values with a header line.
    Csv,
    /// Tab-separated values with a header line.
    Tsv,
}

/// Options of `shell`.
#[derive(Args)]
pub struct ShellOptions {
    /// The server.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:11016")]
    pub server: String,
    /// The server's Unix socket, instead of its address.
    #[arg(short, long, value_name = "PATH", conflicts_with = "data")]
    pub socket: Option<PathBuf>,
    /// Open this data directory instead; no server may have it open.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Log in as this user. The environment variable REMORA_PASSWORD holds the password.
    #[arg(short, long, value_name = "NAME", conflicts_with = "data")]
    pub user: Option<String>,
    /// Send these commands and leave.
    #[arg(short = 'e', long = "execute", value_name = "COMMAND")]
    pub execute: Vec<String>,
}

/// Options of `check`.
#[derive(Args)]
pub struct CheckOptions {
    /// The data directory; no server may have it open.
    pub dir: PathBuf,
    /// Rebuild what can be from the rows, and accept that the rest is lost.
    #[arg(long)]
    pub repair: bool,
}

/// What can be done with dumps.
#[derive(Subcommand)]
pub enum DumpCommand {
    /// Save a data directory to FILE.
    Save {
        /// The data directory; no server may have it open (ask a server by DUMP SAVE).
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The file to write.
        file: PathBuf,
    },
    /// Load FILE into a data directory. Its tables are replaced by the dump's.
    Load {
        /// The data directory; made if it is missing.
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// The file to read.
        file: PathBuf,
    },
    /// Print what a dump holds.
    Info {
        /// The file.
        file: PathBuf,
    },
    /// Read a dump from end to end and verify its checksums.
    Verify {
        /// The file.
        file: PathBuf,
    },
}

/// Options of `compare`.
#[derive(Args)]
pub struct CompareOptions {
    /// The answers that count as right: JSON Lines, `{"query":"text","total_found":2,"rows":[[id,weight],[id,weight]]}`,
    /// of which the first 100 rows are compared.
    #[arg(value_name = "A")]
    pub reference: PathBuf,
    /// The others: the same queries in the same order.
    #[arg(value_name = "B")]
    pub other: PathBuf,
}

/// Refuses a path that is no data directory, which opening it would make into one.
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
