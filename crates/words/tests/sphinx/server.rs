//! A local `searchd` over newly built indexes.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    rc::Rc,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{client::Client, corpus::Corpus, sql::Sql};

/// The most time to wait for a start.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval between checks whether it has started.
const PAUSE: Duration = Duration::from_millis(10);
/// The number of attempts to start, each on another port.
const STARTS: usize = 3;

/// A corpus and the number of its index parts.
pub struct Index {
    pub corpus: Rc<Corpus>,
    pub shards: usize,
}

/// A running server; stopped when dropped.
pub struct Server {
    directory: TempDir,
    indexes: String,
    child: Child,
    ports: Ports,
}

/// The ports of a server.
#[derive(Clone, Copy)]
struct Ports {
    /// For SphinxAPI.
    api: u16,
    /// For SphinxQL.
    sql: u16,
}

impl Server {
    /// Index number n is called `name(n)`, whatever its number of shards.
    pub fn start(indexes: &[Index]) -> Self {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("data")).unwrap();
        let mut text = String::new();
        for (number, index) in indexes.iter().enumerate() {
            write_index(directory.path(), &Self::name(number), index, &mut text);
        }
        fs::write(directory.path().join("sphinx.conf"), &text).unwrap();
        build(directory.path());
        let (child, ports) = launch(directory.path(), &text);
        Self { directory, indexes: text, child, ports }
    }

    pub fn name(number: usize) -> String {
        format!("i{number}")
    }

    pub fn connect(&self) -> io::Result<Client> {
        Client::connect(self.ports.api)
    }

    pub fn connect_sql(&self) -> io::Result<Sql> {
        Sql::connect(self.ports.sql)
    }

    /// Restarts it over the same indexes, because some queries make it crash.
    pub fn restart(&mut self) {
        self.stop();
        (self.child, self.ports) = launch(self.directory.path(), &self.indexes);
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes the files of an index and its part of the configuration.
fn write_index(directory: &Path, name: &str, index: &Index, text: &mut String) {
    for (file, content) in &index.corpus.files {
        fs::write(directory.join(file), content).unwrap();
    }
    if index.shards == 1 {
        return write_part(directory, name, index, 0, text);
    }
    let parts: Vec<String> = (0..index.shards).map(|part| format!("{name}s{part}")).collect();
    for (part, called) in parts.iter().enumerate() {
        write_part(directory, called, index, part, text);
    }
    writeln!(text, "index {name} {{\n type = distributed").unwrap();
    for part in parts {
        writeln!(text, " local = {part}").unwrap();
    }
    text.push_str("}\n");
}

/// Every n-th document, from number `part` on.
fn write_part(directory: &Path, name: &str, index: &Index, part: usize, text: &mut String) {
    let corpus = &index.corpus;
    let mut lines = String::new();
    for document in corpus.documents.iter().skip(part).step_by(index.shards) {
        let [attribute, share, large] = document.columns();
        let fields = document.fields.join("\t");
        writeln!(lines, "{}\t{fields}\t{attribute}\t{share}\t{large}", document.id).unwrap();
    }
    fs::write(directory.join(format!("{name}.tsv")), lines).unwrap();
    writeln!(text, "source {name} {{\n type = tsvpipe\n tsvpipe_command = cat {name}.tsv").unwrap();
    for field in &corpus.fields {
        writeln!(text, " tsvpipe_field = {field}").unwrap();
    }
    text.push_str(" tsvpipe_attr_uint = attribute\n tsvpipe_attr_float = share\n");
    text.push_str(" tsvpipe_attr_bigint = large\n}\n");
    writeln!(text, "index {name} {{\n source = {name}\n path = data/{name}").unwrap();
    text.push_str(" index_field_lengths = 1\n");
    for setting in &corpus.settings {
        writeln!(text, " {setting}").unwrap();
    }
    text.push_str("}\n");
}

fn program(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(name);
    let output = File::create(directory.join(format!("{name}.out"))).unwrap();
    command.current_dir(directory).stdin(Stdio::null());
    command.stdout(output.try_clone().unwrap()).stderr(output);
    command.args(["--config", "sphinx.conf"]);
    command
}

fn build(directory: &Path) {
    let mut command = program("indexer", directory);
    let built = started(command.arg("--all").status());
    let output = || fs::read_to_string(directory.join("indexer.out")).unwrap_or_default();
    assert!(built.success(), "indexer failed:\n{}", output());
}

fn started<T>(what: io::Result<T>) -> T {
    match what {
        Ok(what) => what,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            panic!("Sphinx is not on this machine: run peers/scripts/fetch sphinx")
        }
        Err(error) => panic!("cannot start a program of Sphinx: {error}"),
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server that answers, and its ports.
fn launch(directory: &Path, indexes: &str) -> (Child, Ports) {
    for _ in 0..STARTS {
        let ports = Ports { api: free_port(), sql: free_port() };
        let Ports { api, sql } = ports;
        let text = format!(
            "{indexes}searchd {{\n listen = 127.0.0.1:{api}\n \
             listen = 127.0.0.1:{sql}:mysql41\n pid_file = searchd.pid\n \
             log = searchd.log\n binlog_path =\n workers = threads\n client_timeout = 3600\n \
             max_packet_size = 64M\n}}\n"
        );
        fs::write(directory.join("sphinx.conf"), text).unwrap();
        let mut child = started(program("searchd", directory).arg("--nodetach").spawn());
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE && child.try_wait().unwrap().is_none() {
            if Client::connect(api).is_ok() && Sql::connect(sql).is_ok() {
                return (child, ports);
            }
            std::thread::sleep(PAUSE);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    let log = fs::read_to_string(directory.join("searchd.log")).unwrap_or_default();
    panic!("searchd does not start:\n{log}");
}
