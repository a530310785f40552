//! Remora as a server: started on a data directory, queried over one connection, stopped by SIGTERM.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use remora_engine::TextQuery;

use super::TABLE;
use crate::{
    measure::{MeasuredProcess, RunLimits, repeat, resident_bytes},
    oracle::Answer,
    peers::{LineClient, count_request, numbers, ranked_request, search_request},
    report::Operations,
};

/// The text before the address of the line protocol in the server's output.
const ANNOUNCEMENT: &str = "line protocol: ";
/// The text before the address of the MySQL protocol.
const SQL_ANNOUNCEMENT: &str = "MySQL protocol: ";
/// The longest wait for the server to end after SIGTERM.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The query cache is off, so that every reply is computed; the log is quiet.
const SETTINGS: &str = "[listen]\nline = \"127.0.0.1:0\"\nhttp = \"\"\nsql = \"\"\n\n\
                        [cache]\nenabled = false\n\n[limits]\nmax_connections = 64\n\n[logging]\nlevel = \"warn\"\n";

/// A running server; killed when dropped without [`Server::stop`].
pub struct Server {
    process: Child,
    /// Kept open, since the server's writes to a closed pipe would fail.
    _output: BufReader<ChildStdout>,
    address: String,
    client: LineClient,
    /// The time from the start of the process to its first answer.
    pub start: Duration,
}

impl Server {
    /// Starts the server on a data directory and waits for its first answer.
    pub fn start(data: &Path) -> Result<Self> {
        let settings = data.with_extension("toml");
        std::fs::write(&settings, SETTINGS)?;
        let binary = binary()?;
        let start = Instant::now();
        let mut process = Command::new(&binary)
            .arg("serve")
            .arg("--config")
            .arg(&settings)
            .arg("--data")
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let connected = announced_address(&mut process).and_then(|(address, output)| {
            let mut client = LineClient::connect(address.as_str())?;
            client.request(format!("COUNT {TABLE} remora\r\n").as_bytes())?;
            Ok((address, output, client))
        });
        match connected {
            Ok((address, output, client)) => {
                let start = start.elapsed();
                Ok(Self { process, _output: output, address, client, start })
            }
            Err(error) => {
                process.kill()?;
                process.wait()?;
                Err(error.context("the server did not come up"))
            }
        }
    }

    /// The address of the line protocol.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process whose CPU time is measured.
    pub fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Of(self.process.id())
    }

    /// Resident memory, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.process.id())
    }

    /// The newest ids and the total number.
    pub fn search(&mut self, query: &TextQuery) -> Result<Answer> {
        let reply = self.client.request(&search_request(TABLE, query))?;
        let mut numbers = numbers(reply, "OK RESULTS")?;
        if numbers.is_empty() {
            bail!("no total in the reply {reply}");
        }
        let newest = numbers.split_off(1);
        Ok(Answer { total: numbers[0], newest })
    }

    /// The total number.
    pub fn count(&mut self, query: &TextQuery) -> Result<u64> {
        let reply = self.client.request(&count_request(TABLE, query))?;
        numbers(reply, "OK COUNT")?.first().copied().context("no count in the reply")
    }

    /// Measures the three operations over one connection.
    pub fn measure(&mut self, query: &TextQuery, effort: RunLimits) -> Result<Operations> {
        let processor = self.processor();
        let mut measure = |request: Vec<u8>| {
            repeat(effort, processor, || {
                std::hint::black_box(self.client.request(&request)?);
                Ok(())
            })
        };
        Ok(Operations {
            search: measure(search_request(TABLE, query))?,
            count: measure(count_request(TABLE, query))?,
            ranked: measure(ranked_request(TABLE, query))?,
        })
    }

    /// Stops the server cleanly.
    pub fn stop(mut self) -> Result<()> {
        let process = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &process]).status().context("cannot run kill")?;
        let start = Instant::now();
        while start.elapsed() < MAX_WAIT {
            if let Some(status) = self.process.try_wait()? {
                return if status.success() { Ok(()) } else { bail!("it ended with {status}") };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the server still runs {} s after SIGTERM", MAX_WAIT.as_secs())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill, which is no error.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads the address of the line protocol from a server's output; also returns the reader for the rest of the output.
pub fn announced_address(process: &mut Child) -> Result<(String, BufReader<ChildStdout>)> {
    let mut output = BufReader::new(process.stdout.take().context("no output of the server")?);
    let mut line = String::new();
    while output.read_line(&mut line)? > 0 {
        if let Some(address) = line.strip_prefix(ANNOUNCEMENT) {
            return Ok((address.trim().to_owned(), output));
        }
        line.clear();
    }
    bail!("it ended before it named its address")
}

/// Reads the port of the MySQL protocol from the next output.
pub fn announced_sql_port(output: &mut BufReader<ChildStdout>) -> Result<u16> {
    let mut line = String::new();
    while output.read_line(&mut line)? > 0 {
        if let Some((_, address)) = line.split_once(SQL_ANNOUNCEMENT) {
            let port = address.trim().rsplit(':').next().context("no port")?;
            return Ok(port.parse()?);
        }
        line.clear();
    }
    bail!("it ended before it named its address for SQL")
}

/// The server's binary next to this one; built first if Cargo runs this program.
pub fn binary() -> Result<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet", "--package", "remora-command", "--manifest-path"])
            .arg(manifest);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        if !build.status()?.success() {
            bail!("the server does not build");
        }
    }
    Ok(std::env::current_exe()?.with_file_name("remora"))
}
