//! Remora as a follower: `remora serve --mysql`, controlled over the line protocol; SQL listens too.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    measure::MeasuredProcess,
    peers::{LineClient, numbers},
    remora::{announced_address, announced_sql_port},
};

/// No query cache, so that every reply is computed; HTTP does not listen.
const SETTINGS: &str = "[listen]\nline = \"127.0.0.1:0\"\nhttp = \"\"\nsql = \"127.0.0.1:0\"\n\n\
                        [cache]\nenabled = false\n\n[logging]\nlevel = \"warn\"\n";
/// The longest wait for a copy or a position.
const MAX_WAIT: Duration = Duration::from_secs(1_200);
/// Seconds of one WAIT; less than the client's read timeout.
const WAIT_SECONDS: u32 = 60;
/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A following process; killed when dropped.
pub struct Remora {
    process: Child,
    /// Kept open, since the server's writes to a closed pipe would fail.
    _output: BufReader<ChildStdout>,
    client: LineClient,
    address: String,
    /// The port of the MySQL protocol on 127.0.0.1.
    pub sql_port: u16,
    /// When the process was started.
    pub started: Instant,
    directory: PathBuf,
}

/// CPU time by thread name, in seconds.
pub type Threads = BTreeMap<String, f64>;

/// How a process ends before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is asked to stop and writes what it has in memory.
    Stop,
    /// It is killed, like by a crash.
    Kill,
}

impl Remora {
    /// Starts Remora over a data directory, which is new or was left by another process.
    pub fn start(program: &Path, directory: &Path, url: &str) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let settings = directory.join("remora.toml");
        fs::write(&settings, SETTINGS)?;
        let started = Instant::now();
        let mut process = Command::new(program)
            .arg("serve")
            .arg("--config")
            .arg(&settings)
            .arg("--data")
            .arg(directory.join("data"))
            .args(["--mysql", url])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let connected = announced_address(&mut process).and_then(|(address, mut output)| {
            let sql_port = announced_sql_port(&mut output)?;
            Ok((LineClient::connect(address.as_str())?, address, sql_port, output))
        });
        match connected {
            Ok((client, address, sql_port, output)) => {
                let directory = directory.to_owned();
                Ok(Self { process, _output: output, client, address, sql_port, started, directory })
            }
            Err(error) => {
                process.kill()?;
                process.wait()?;
                Err(error.context("Remora did not come up"))
            }
        }
    }

    /// Ends the process and starts it again over its data. Returns the time from its start until it answers.
    pub fn restart(&mut self, program: &Path, url: &str, ending: Ending) -> Result<Duration> {
        match ending {
            Ending::Stop => kill_process(Pid::from_child(&self.process), Signal::TERM)?,
            Ending::Kill => self.process.kill()?,
        }
        self.process.wait()?;
        let mut next = Self::start(program, &self.directory, url)?;
        next.client.request(b"INFO\r\n")?;
        let took = next.started.elapsed();
        std::mem::swap(self, &mut next);
        // The data belongs to the process that runs.
        next.directory = PathBuf::new();
        Ok(took)
    }

    /// Opens another connection.
    pub fn connect(&self) -> Result<LineClient> {
        LineClient::connect(self.address.as_str())
    }

    /// The process whose CPU time is measured.
    pub fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Of(self.process.id())
    }

    /// The process id.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Resident memory, in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        crate::measure::resident_bytes(self.process.id())
    }

    /// What its data directory takes on the disk, in bytes.
    pub fn disk_bytes(&self) -> Result<u64> {
        crate::measure::directory_bytes(&self.directory)
    }

    /// Waits until at least this many tables are copied.
    pub fn wait_until_live(&mut self, tables: usize) -> Result<()> {
        let begun = Instant::now();
        loop {
            let reply = self.client.request(b"REPLICATION STATUS\r\n")?;
            let states: Vec<&str> = reply
                .lines()
                .filter_map(|line| line.strip_prefix("table ")?.split_once(": "))
                .map(|(_, state)| state)
                .collect();
            if states.len() >= tables && states.iter().all(|state| *state == "live") {
                return Ok(());
            }
            let bad = |state: &&&str| state.starts_with("stopped") || state.starts_with("refused");
            if states.iter().any(|state| bad(&state)) || begun.elapsed() > MAX_WAIT {
                bail!("the tables are not copied: {reply}");
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Stops following until [`Remora::follow`].
    pub fn stop_following(&mut self) -> Result<()> {
        self.client.request(b"REPLICATION STOP\r\n").map(drop)
    }

    /// Starts following again.
    pub fn follow(&mut self) -> Result<()> {
        self.client.request(b"REPLICATION START\r\n").map(drop)
    }

    /// Starts following unless it is running.
    pub fn follow_if_stopped(&mut self) -> Result<()> {
        let reply = self.client.request(b"REPLICATION STATUS\r\n")?;
        if reply.contains("status: running") { Ok(()) } else { self.follow() }
    }

    /// Waits until these transactions are readable.
    pub fn wait_for(&mut self, position: &str) -> Result<()> {
        let request = format!("WAIT {position} {WAIT_SECONDS}\r\n");
        let begun = Instant::now();
        loop {
            match self.client.request(request.as_bytes()) {
                Ok(_) => return Ok(()),
                Err(error) if begun.elapsed() > MAX_WAIT => return Err(error),
                Err(error) if !format!("{error:#}").contains("not applied within") => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
    }

    /// Row changes applied since the start.
    pub fn changes(&mut self) -> Result<u64> {
        let reply = self.client.request(b"INFO\r\n")?;
        let names = ["inserts_applied", "updates_applied", "deletes_applied"];
        let mut sum = 0;
        for name in names {
            let prefix = format!("replication_{name}: ");
            let count = reply.lines().find_map(|line| line.strip_prefix(&prefix));
            sum += count.with_context(|| format!("no {name} in INFO: {reply}"))?.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// The number of rows that contain a term.
    pub fn count(&mut self, table: &str, term: &str) -> Result<u64> {
        count(&mut self.client, table, term)
    }

    /// Waits until background work is done, that is, until the process has used almost no CPU for a while.
    pub fn settle(&mut self) -> Result<()> {
        let spent = |remora: &Self| remora.processor().precise().unwrap_or_default();
        let begun = Instant::now();
        let mut before = spent(self);
        while begun.elapsed() < MAX_WAIT {
            sleep(Duration::from_millis(300));
            let now = spent(self);
            if now.saturating_sub(before) < Duration::from_millis(15) {
                return Ok(());
            }
            before = now;
        }
        bail!("it is never idle")
    }

    /// CPU time of each thread.
    pub fn threads(&self) -> Result<Threads> {
        threads(self.process.id())
    }
}

impl Drop for Remora {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The number of rows that contain a term.
pub fn count(client: &mut LineClient, table: &str, term: &str) -> Result<u64> {
    let reply = client.request(format!("COUNT {table} {term}\r\n").as_bytes())?;
    numbers(reply, "OK COUNT")?.first().copied().context("no count in the reply")
}

/// CPU time by thread name, in seconds.
fn threads(process: u32) -> Result<Threads> {
    let mut threads = Threads::new();
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let path = task?.path();
        let read = |file: &str| {
            let mut text = String::new();
            fs::File::open(path.join(file)).and_then(|mut file| file.read_to_string(&mut text))?;
            Ok::<_, std::io::Error>(text)
        };
        // A thread may end while it is read.
        let (Ok(name), Ok(times)) = (read("comm"), read("schedstat")) else { continue };
        let spent = times.split_ascii_whitespace().next().and_then(|time| time.parse::<u64>().ok());
        *threads.entry(name.trim().to_owned()).or_default() += spent.unwrap_or(0) as f64 / 1e9;
    }
    Ok(threads)
}

/// CPU time of each thread between two readings; the busiest first.
pub fn spent_between(before: &Threads, after: &Threads) -> Vec<(String, f64)> {
    let spent = after.iter().map(|(name, &after)| {
        (name.clone(), after - before.get(name).copied().unwrap_or_default())
    });
    let mut spent: Vec<_> = spent.filter(|(_, seconds)| *seconds >= 0.005).collect();
    spent.sort_by(|a, b| b.1.total_cmp(&a.1));
    spent
}

/// Adds CPU times of threads to earlier ones.
pub fn add(sums: &mut Vec<(String, f64)>, spent: Vec<(String, f64)>) {
    for (name, seconds) in spent {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            None => sums.push((name, seconds)),
            Some((_, sum)) => *sum += seconds,
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_worked_are_named_busiest_first() {
        let threads = |pairs: &[(&str, f64)]| -> Threads {
            pairs.iter().map(|(name, spent)| ((*name).to_owned(), *spent)).collect()
        };
        let before = threads(&[("a", 1.0), ("b", 2.0)]);
        let after = threads(&[("a", 1.5), ("b", 2.001), ("c", 3.0)]);
        assert_eq!(spent_between(&before, &after), [("c".to_owned(), 3.0), ("a".to_owned(), 0.5)]);
        assert!(!super::threads(std::process::id()).unwrap().is_empty());
    }
}
