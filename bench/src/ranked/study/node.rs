//! A server of an experiment: its parts of the rows, in a directory of its own, and distributed tables over them.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};

use super::super::servers::{
    Files, Ports, REMORA, SPHINX, Server, free_port, run, start_remora, start_searchd,
};

/// The distributed table over all parts of a server.
pub const LOCALS: &str = "locals";
/// The distributed table whose first part is read as it is, and the others through the server's own port.
pub const AGENTS: &str = "agents";
/// The distributed table over other servers.
pub const REMOTE: &str = "remote";

/// The most time for answers of agents, in milliseconds. It is long because all servers share a machine.
const TIMEOUT_MS: u32 = 60_000;
/// The most processes of a `searchd` with `prefork`, which are started at once. Each waits for those that it asks.
const PREFORKED: usize = 32;
/// Attempts to start a Remora whose port must be known before.
const STARTS: usize = 5;

/// A program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Remora,
    Sphinx,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Self::Remora => REMORA,
            Self::Sphinx => SPHINX,
        }
    }
}

/// A part of the rows: of the first `rows` each `of`-th, from number `number` on.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub rows: usize,
    pub of: usize,
    pub number: usize,
}

impl Share {
    /// The first rows in this many parts.
    pub fn all(rows: usize, of: usize) -> Vec<Self> {
        (0..of).map(|number| Self { rows, of, number }).collect()
    }
}

/// How a server works.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Sphinx's `workers`.
    pub workers: &'static str,
    /// Sphinx's `dist_threads`, Remora's `worker_threads`. 0 is none (Sphinx) and one a processor (Remora).
    pub count: usize,
}

impl Threads {
    pub fn new(count: usize) -> Self {
        Self { workers: "threads", count }
    }
}

/// A server that can be loaded, started and started again.
pub struct Node {
    engine: Engine,
    directory: PathBuf,
    rows: PathBuf,
    remora: PathBuf,
    parts: Vec<Share>,
    /// Addresses and tables of other servers.
    others: Vec<(String, &'static str)>,
}

impl Node {
    /// A server with these parts of the rows and, if there are others, a distributed table over these. Its directory is
    /// made in `place`.
    pub fn new(
        files: &Files,
        (engine, place, name): (Engine, &Path, &str),
        parts: Vec<Share>,
        others: Vec<(String, &'static str)>,
    ) -> Result<Self> {
        let directory = place.join(format!("{}-{name}", engine.name()));
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let rows = files.directory().join("docs.tsv").canonicalize()?;
        Ok(Self { engine, directory, rows, remora: files.remora().to_owned(), parts, others })
    }

    /// Loads the parts and returns the time.
    pub fn load(&self) -> Result<Duration> {
        if self.parts.is_empty() {
            return Ok(Duration::ZERO);
        }
        match self.engine {
            Engine::Remora => {
                fs::write(self.directory.join("load.conf"), self.indexes())?;
                let mut command = Command::new(&self.remora);
                command.args(["import", "--config", "load.conf", "--data", "data"]);
                run(&self.directory, command, "import")
            }
            Engine::Sphinx => {
                let text = self.configuration(Ports { sql: 1, api: 2 }, Threads::new(1));
                fs::write(self.directory.join("sphinx.conf"), text)?;
                let mut command = Command::new("indexer");
                command.args(["--config", "sphinx.conf", "--all"]);
                run(&self.directory, command, "indexer")
            }
        }
    }

    /// Starts it, with its distributed tables.
    pub fn start(&self, threads: Threads) -> Result<Server> {
        match self.engine {
            Engine::Sphinx => {
                start_searchd(&self.directory, &|ports| self.configuration(ports, threads))
            }
            Engine::Remora => {
                let mut started = self.start_remora(threads);
                for _ in 1..STARTS {
                    if started.is_ok() {
                        break;
                    }
                    started = self.start_remora(threads);
                }
                let server = started?;
                self.declare(&server)?;
                Ok(server)
            }
        }
    }

    fn start_remora(&self, threads: Threads) -> Result<Server> {
        let port = free_port()?;
        let mut addresses = vec![format!("127.0.0.1:{port}")];
        addresses.extend(self.others.iter().map(|(address, _)| address.clone()));
        let more = format!(
            "[limits]\nworker_threads = {}\n\n[agents]\naddresses = {addresses:?}\nuser = \"bench\"\n",
            threads.count
        );
        let (settings, data) = (self.directory.join("remora.toml"), self.directory.join("data"));
        start_remora(&self.remora, &settings, &data, port, &more)
    }

    /// Declares Remora's distributed tables. The port in them is another one after each start.
    fn declare(&self, server: &Server) -> Result<()> {
        let mut client = server.connect()?;
        for part in 0..self.parts.len() {
            client.count(&format!("OPTIMIZE TABLE p{part}"))?;
        }
        let own = |parts: &mut dyn Iterator<Item = usize>| -> Vec<(String, String)> {
            parts.map(|part| (server.agent_address(), format!("p{part}"))).collect()
        };
        let others =
            self.others.iter().map(|(address, table)| (address.clone(), (*table).to_owned()));
        let others: Vec<(String, String)> = others.collect();
        for (name, locals, agents) in [
            (LOCALS, self.parts.len(), Vec::new()),
            (AGENTS, self.parts.len().min(1), own(&mut (1..self.parts.len()))),
            (REMOTE, 0, others),
        ] {
            if locals + agents.len() == 0 {
                continue;
            }
            let mut create = format!("CREATE TABLE {name} type='distributed'");
            (0..locals).try_for_each(|part| write!(create, " local='p{part}'"))?;
            for (address, table) in &agents {
                write!(create, " agent='{address}:{table}'")?;
            }
            if !agents.is_empty() {
                write!(create, " agent_query_timeout='{TIMEOUT_MS}'")?;
            }
            client.count(&format!("DROP TABLE IF EXISTS {name}"))?;
            client.count(&create)?;
        }
        Ok(())
    }

    /// The sources and plain indexes of the parts.
    fn indexes(&self) -> String {
        let rows = self.rows.display();
        let mut text = String::new();
        for (place, Share { rows: most, of, number }) in self.parts.iter().enumerate() {
            let _ = writeln!(
                text,
                "source p{place} {{\n type = tsvpipe\n \
                 tsvpipe_command = awk 'NR > {most} {{ exit }} NR % {of} == {number}' '{rows}'\n \
                 tsvpipe_field = title\n tsvpipe_field = text\n tsvpipe_attr_uint = year\n}}\n\
                 index p{place} {{\n source = p{place}\n path = p{place}\n}}"
            );
        }
        text
    }

    /// A whole configuration of Sphinx.
    fn configuration(
        &self,
        Ports { sql, api }: Ports,
        Threads { workers, count }: Threads,
    ) -> String {
        let mut text = self.indexes();
        let local = |part: usize| format!(" local = p{part}\n");
        let own = |part: usize| format!(" agent = 127.0.0.1:{api}:p{part}\n");
        let parts = self.parts.len();
        let other = |(address, table): &(String, &str)| format!(" agent = {address}:{table}\n");
        let first = if parts == 0 { String::new() } else { local(0) };
        for (name, lines) in [
            (LOCALS, (0..parts).map(local).collect::<String>()),
            (AGENTS, first + &(1..parts).map(own).collect::<String>()),
            (REMOTE, self.others.iter().map(other).collect()),
        ] {
            if !lines.is_empty() {
                let _ = writeln!(
                    text,
                    "index {name} {{\n type = distributed\n{lines} agent_query_timeout = {TIMEOUT_MS}\n \
                     agent_connect_timeout = {TIMEOUT_MS}\n}}"
                );
            }
        }
        let most = if workers == "prefork" { PREFORKED } else { 0 };
        text + &format!(
            "indexer {{\n mem_limit = 512M\n}}\nsearchd {{\n listen = 127.0.0.1:{sql}:mysql41\n listen = 127.0.0.1:{api}\n \
             pid_file = searchd.pid\n log = searchd.log\n binlog_path =\n workers = {workers}\n max_children = {most}\n \
             dist_threads = {count}\n client_timeout = 3600\n max_packet_size = 64M\n}}\n"
        )
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("{} is left behind: {error}", self.directory.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parts: Vec<Share>, others: Vec<(String, &'static str)>) -> (tempfile::TempDir, Node) {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::write(directory.path(), "remora".into(), &[], 0).unwrap();
        let node = Node::new(&files, (Engine::Sphinx, directory.path(), "x"), parts, others);
        (directory, node.unwrap())
    }

    #[test]
    fn parts_have_all_of_the_first_rows_and_one_is_read_without_an_agent() {
        let (_directory, node) = node(Share::all(90, 3), Vec::new());
        let text = node.configuration(Ports { sql: 1, api: 7 }, Threads::new(2));
        for line in [
            "awk 'NR > 90 { exit } NR % 3 == 0' '",
            "awk 'NR > 90 { exit } NR % 3 == 2' '",
            "index locals {\n type = distributed\n local = p0\n local = p1\n local = p2\n",
            "index agents {\n type = distributed\n local = p0\n agent = 127.0.0.1:7:p1\n agent = 127.0.0.1:7:p2\n",
            " dist_threads = 2\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
        assert!(!text.contains("index remote"));
    }

    #[test]
    fn a_server_without_rows_asks_others() {
        let (_directory, node) = node(Vec::new(), vec![("h:1".to_owned(), LOCALS)]);
        let text = node.configuration(Ports { sql: 1, api: 7 }, Threads::new(2));
        assert!(text.starts_with("index remote {\n type = distributed\n agent = h:1:locals\n"));
        assert!(!text.contains("index locals"));
    }
}
