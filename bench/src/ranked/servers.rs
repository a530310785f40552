//! Remora and Sphinx over the same rows: both load the same `sphinx.conf` and the same file of documents, in the way
//! their documentation describes.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::client::Client;
use crate::{corpus::Document, measure::MeasuredProcess, remora::announced_sql_port};

/// The table, and the index of all rows.
pub const TABLE: &str = "wiki";
/// Sphinx's distributed index of the same rows.
pub const SHARDED: &str = "shards";

/// The servers' names in tables.
pub const REMORA: &str = "Remora";
pub const SPHINX: &str = "searchd";

/// The longest wait for a server to start, to stop or to become idle.
const MAX_WAIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(50);
/// Attempts to start on a free port: another program may take the port first.
const STARTS: usize = 5;
/// A server is idle if it uses less than a share of one CPU, for a number of steps in a row.
const STEP: Duration = Duration::from_millis(500);
const IDLE_SHARE: u32 = 20;
const IDLE_STEPS: u32 = 8;

/// The documents and the configuration, in their own directory.
pub struct Files {
    directory: PathBuf,
    remora: PathBuf,
    shards: usize,
}

/// A running server.
pub struct Server {
    /// [`REMORA`] or [`SPHINX`].
    pub name: &'static str,
    port: u16,
    /// The port at which a distributed table of another server reads this one: SphinxAPI's of a `searchd`.
    agent_port: u16,
    process: Child,
}

/// The ports of a `searchd`.
#[derive(Clone, Copy)]
pub struct Ports {
    /// For SphinxQL.
    pub sql: u16,
    /// For SphinxAPI.
    pub api: u16,
}

/// Sphinx's version; `None` if it is not installed.
pub fn sphinx_version() -> Option<String> {
    let output = Command::new("searchd").arg("--help").stdin(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

impl Files {
    /// Writes the files: columns are separated by tabs, other control characters become spaces.
    pub fn write(
        directory: &Path,
        remora: PathBuf,
        documents: &[Document],
        shards: usize,
    ) -> Result<Self> {
        let mut rows = BufWriter::new(File::create(directory.join("docs.tsv"))?);
        for document in documents {
            rows.write_all(row(document).as_bytes())?;
        }
        rows.flush()?;
        let files = Self { directory: directory.to_owned(), remora, shards };
        files.configure(1, 1)?;
        Ok(files)
    }

    fn configure(&self, port: u16, threads: usize) -> Result<()> {
        let text = configuration(self.shards, port, threads);
        Ok(fs::write(self.directory.join("sphinx.conf"), text)?)
    }

    /// The directory of the documents.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The remora program.
    pub fn remora(&self) -> &Path {
        &self.remora
    }

    /// Loads Remora's table and returns the time.
    pub fn load_remora(&self) -> Result<Duration> {
        self.import("sphinx.conf", &self.data())
    }

    /// Loads a table with every `count`-th row, from row `part` on, into a data directory of its
    /// own.
    pub fn load_part(&self, part: usize, count: usize) -> Result<Duration> {
        let name = format!("part-{count}-{part}.conf");
        let rows = format!("awk 'NR % {count} == {part}' docs.tsv");
        let text = configuration(0, 0, 1).replace("cat docs.tsv", &rows);
        fs::write(self.directory.join(&name), text)?;
        self.import(&name, &self.part(part, count))
    }

    fn import(&self, configuration: &str, data: &Path) -> Result<Duration> {
        let mut command = Command::new(&self.remora);
        command.args(["import", "--config", configuration, "--data"]).arg(data).arg(TABLE);
        run(&self.directory, command, "remora-import")
    }

    /// Loads Sphinx's indexes and returns the time.
    pub fn load_sphinx(&self) -> Result<Duration> {
        let mut command = Command::new("indexer");
        command.args(["--config", "sphinx.conf", "--all"]);
        run(&self.directory, command, "indexer")
    }

    /// Starts Remora with this many threads for connections; 0 means one per CPU.
    pub fn start_remora(&self, threads: usize) -> Result<Server> {
        let limits = format!("[limits]\nworker_threads = {threads}\n");
        self.serve("remora.toml", &self.data(), &limits)
    }

    /// Starts a Remora with a part of the rows: see [`Files::load_part`].
    pub fn start_part(&self, part: usize, count: usize) -> Result<Server> {
        self.serve("part.toml", &self.part(part, count), "")
    }

    /// Starts a Remora without rows that may read from the servers at these addresses.
    pub fn start_front(&self, count: usize, addresses: &[String]) -> Result<Server> {
        let agents = format!("[agents]\naddresses = {addresses:?}\nuser = \"bench\"\n");
        let data = self.directory.join(format!("remora-front-{count}"));
        self.serve("front.toml", &data, &agents)
    }

    fn serve(&self, settings: &str, data: &Path, more: &str) -> Result<Server> {
        start_remora(&self.remora, &self.directory.join(settings), data, 0, more)
    }

    /// Starts Sphinx with this many threads for the parts of a distributed index.
    pub fn start_sphinx(&self, threads: usize) -> Result<Server> {
        start_searchd(&self.directory, &|ports| configuration(self.shards, ports.sql, threads))
    }

    fn data(&self) -> PathBuf {
        self.directory.join("remora-data")
    }

    fn part(&self, part: usize, count: usize) -> PathBuf {
        self.directory.join(format!("remora-part-{count}-{part}"))
    }
}

/// Starts a Remora; `more` is a part of its settings. Port 0 is any free one.
pub fn start_remora(
    program: &Path,
    settings: &Path,
    data: &Path,
    port: u16,
    more: &str,
) -> Result<Server> {
    let text = format!(
        "[listen]\nline = \"\"\nhttp = \"\"\nsql = \"127.0.0.1:{port}\"\n\n{more}\n[logging]\nlevel = \"warn\"\n"
    );
    fs::write(settings, text)?;
    let mut process = Command::new(program)
        .arg("serve")
        .arg("--config")
        .arg(settings)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let output = process.stdout.take().context("no output of the server");
    let mut server = Server { name: REMORA, port: 0, agent_port: 0, process };
    let mut output = BufReader::new(output?);
    server.port = announced_sql_port(&mut output)?;
    server.agent_port = server.port;
    // Later output is discarded, but must be read, so that the server never blocks on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    Ok(server)
}

/// Starts a `searchd` in a directory. The configuration is written as `sphinx.conf` there.
pub fn start_searchd(directory: &Path, configuration: &dyn Fn(Ports) -> String) -> Result<Server> {
    for _ in 0..STARTS {
        let ports = Ports { sql: free_port()?, api: free_port()? };
        fs::write(directory.join("sphinx.conf"), configuration(ports))?;
        let mut command = Command::new("searchd");
        command.args(["--config", "sphinx.conf", "--nodetach"]);
        let process = prepared(directory, &mut command, "searchd")?.spawn()?;
        let mut server = Server { name: SPHINX, port: ports.sql, agent_port: ports.api, process };
        let begun = Instant::now();
        while begun.elapsed() < MAX_WAIT && server.process.try_wait()?.is_none() {
            if server.connect().is_ok() {
                return Ok(server);
            }
            sleep(PAUSE);
        }
    }
    bail!("searchd does not come up:\n{}", printed(directory, "searchd"))
}

/// A port that is free now; another program may take it.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Runs a program to its end and returns the time. Its output is in `name.out`.
pub fn run(directory: &Path, mut command: Command, name: &str) -> Result<Duration> {
    let begun = Instant::now();
    let status = prepared(directory, &mut command, name)?.status();
    let status = status.with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name} failed:\n{}", printed(directory, name));
    Ok(begun.elapsed())
}

/// Prepares a program that works in the directory and writes its output to a file.
fn prepared<'c>(directory: &Path, command: &'c mut Command, name: &str) -> Result<&'c mut Command> {
    let output = File::create(directory.join(name).with_extension("out"))?;
    command.current_dir(directory).stdin(Stdio::null());
    Ok(command.stdout(output.try_clone()?).stderr(output))
}

fn printed(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name).with_extension("out")).unwrap_or_default()
}

impl Server {
    /// Opens a connection.
    pub fn connect(&self) -> Result<Client> {
        Client::connect(self.port).with_context(|| format!("cannot connect to {}", self.name))
    }

    /// The address of its MySQL protocol.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address at which a distributed table of another server reads this one.
    pub fn agent_address(&self) -> String {
        format!("127.0.0.1:{}", self.agent_port)
    }

    /// The process whose CPU time is measured.
    pub fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Of(self.process.id())
    }

    /// Resident memory, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        crate::measure::resident_bytes(self.process.id())
    }

    /// Waits until background work has ended, which would otherwise be counted for the queries.
    pub fn settle(&self) -> Result<()> {
        let (begun, mut idle) = (Instant::now(), 0);
        while idle < IDLE_STEPS {
            let before = self.processor().spent();
            sleep(STEP);
            let worked =
                before.zip(self.processor().spent()).map(|(before, after)| before.until(after));
            idle =
                if worked.is_none_or(|worked| worked < STEP / IDLE_SHARE) { idle + 1 } else { 0 };
            if begun.elapsed() > MAX_WAIT {
                eprintln!("{} still works for itself: its figures have that in them", self.name);
                break;
            }
        }
        Ok(())
    }

    /// Stops the server by a signal, as an operator would.
    pub fn stop(mut self) -> Result<()> {
        let process = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &process]).status().context("cannot run kill")?;
        let begun = Instant::now();
        while self.process.try_wait()?.is_none() {
            ensure!(begun.elapsed() < MAX_WAIT, "{} still runs after SIGTERM", self.name);
            sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A document as a line: id, fields, attribute.
fn row(document: &Document) -> String {
    let clean = |text: &str| text.replace(char::is_control, " ");
    let (title, text) = (clean(&document.title), clean(&document.text));
    format!("{}\t{title}\t{text}\t{}\n", document.id, document.year.unwrap_or_default().max(0))
}

/// The configuration for both: an index of all rows and, if `shards` is not 0, a distributed one whose parts have every
/// n-th row.
fn configuration(shards: usize, port: u16, threads: usize) -> String {
    let mut text = format!(
        "source {TABLE} {{\n type = tsvpipe\n tsvpipe_command = cat docs.tsv\n tsvpipe_field = title\n \
         tsvpipe_field = text\n tsvpipe_attr_uint = year\n}}\nindex {TABLE} {{\n source = {TABLE}\n path = {TABLE}\n}}\n"
    );
    let mut locals = String::new();
    for part in 0..shards {
        let name = format!("{TABLE}_{part}");
        text += &format!(
            "source {name} : {TABLE} {{\n tsvpipe_command = awk 'NR % {shards} == {part}' docs.tsv\n}}\n\
             index {name} {{\n source = {name}\n path = {name}\n}}\n"
        );
        locals += &format!(" local = {name}\n");
    }
    if shards > 0 {
        text += &format!("index {SHARDED} {{\n type = distributed\n{locals}}}\n");
    }
    text += &format!(
        "indexer {{\n mem_limit = 512M\n}}\nsearchd {{\n listen = 127.0.0.1:{port}:mysql41\n pid_file = searchd.pid\n \
         log = searchd.log\n binlog_path =\n workers = threads\n dist_threads = {threads}\n client_timeout = 3600\n \
         max_packet_size = 64M\n}}\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_of_four_columns() {
        let document = Document {
            id: 7,
            title: "a\tb".into(),
            text: "c\r\nd \"e\" \\f".into(),
            year: Some(-44),
            ..Default::default()
        };
        assert_eq!(row(&document), "7\ta b\tc  d \"e\" \\f\t0\n");
    }

    #[test]
    fn the_parts_of_an_index_have_all_rows() {
        let text = configuration(2, 9306, 3);
        for line in [
            " tsvpipe_command = awk 'NR % 2 == 0' docs.tsv\n",
            " tsvpipe_command = awk 'NR % 2 == 1' docs.tsv\n",
            "index shards {\n type = distributed\n local = wiki_0\n local = wiki_1\n}\n",
            " dist_threads = 3\n",
            " listen = 127.0.0.1:9306:mysql41\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
        assert!(!configuration(0, 1, 1).contains("distributed"));
    }
}
