//! Remora as a server for tiedot's clients.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::{measure::MeasuredProcess, remora::binary};

/// The text before the address in the server's output.
const ANNOUNCEMENT: &str = "tiedot's HTTP API: http://";
const SETTINGS: &str = "[listen]\nline = \"127.0.0.1:0\"\nhttp = \"\"\nsql = \"\"\ntiedot = \"127.0.0.1:0\"\n\n\
                        [logging]\nlevel = \"warn\"\n";

/// A running server; killed when dropped without [`TiedotServer::stop`].
pub(super) struct TiedotServer {
    process: Child,
    /// Kept open, since the server's writes to a closed pipe would fail.
    output: BufReader<ChildStdout>,
    address: String,
}

impl TiedotServer {
    /// Starts the server on a new data directory.
    pub(super) fn start(data: &Path) -> Result<Self> {
        let settings = data.with_extension("toml");
        std::fs::write(&settings, SETTINGS)?;
        let mut process = Command::new(binary()?)
            .arg("serve")
            .arg("--config")
            .arg(&settings)
            .arg("--data")
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start remora")?;
        let output = process.stdout.take().context("no output of the server")?;
        let mut server = Self { process, output: BufReader::new(output), address: String::new() };
        let mut line = String::new();
        while server.output.read_line(&mut line)? > 0 {
            if let Some(address) = line.strip_prefix(ANNOUNCEMENT) {
                address.trim().clone_into(&mut server.address);
                return Ok(server);
            }
            line.clear();
        }
        anyhow::bail!("it ended before it named its address")
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The process whose CPU time is measured.
    pub(super) fn process(&self) -> MeasuredProcess {
        MeasuredProcess::Of(self.process.id())
    }

    /// Stops the server cleanly.
    pub(super) fn stop(mut self) -> Result<()> {
        let process = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &process]).status().context("cannot run kill")?;
        let status = self.process.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

impl Drop for TiedotServer {
    fn drop(&mut self) {
        // After `stop` there is nothing left to kill, which is no error.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
