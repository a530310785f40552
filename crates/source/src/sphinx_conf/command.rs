//! Runs the shell commands that output a source's documents.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio},
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{Error, Result};

/// The most lines of a command's standard error that are kept (the last ones), and the most bytes of each.
const KEPT_LINES: usize = 5;
const KEPT_BYTES: u64 = 300;

/// How long a command may take to end after its output has ended.
const ENDING_POLLS: u32 = 20;
const ENDING_PAUSE: Duration = Duration::from_millis(10);

/// The process groups of running commands.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Kills all running commands, for a program that is about to exit. They have process groups of their own, so signals
/// of the terminal do not reach them.
pub fn end_commands() {
    for group in GROUPS.lock().iter() {
        // It may have ended already.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// A running command. Dropping it kills it and everything that it started.
pub(super) struct RunningCommand {
    child: Child,
    group: Option<Pid>,
    /// Reads its standard error.
    error_output: Option<JoinHandle<Vec<String>>>,
    is_over: bool,
}

impl RunningCommand {
    /// Starts a command. The caller reads its output.
    pub fn start(source: &str, command: &str) -> Result<(Self, ChildStdout)> {
        let failed = |error| Error::io(&format!("{source}: cannot run '{command}'"), error);
        // A process group of its own, so that a whole pipeline can be killed.
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        GROUPS.lock().extend(group);
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let error_output = errors.map(|errors| std::thread::spawn(move || last_lines(errors)));
        let running = Self { child, group, error_output, is_over: false };
        let output = output.ok_or_else(|| failed(std::io::Error::other("it has no output")))?;
        Ok((running, output))
    }

    /// Waits for its end. It must succeed if its output was read without error; otherwise it is killed, and its own
    /// failure, if it had failed before, is reported instead of the read error.
    pub fn finish(mut self, source: &str, output: ChildStdout, read: Result<()>) -> Result<()> {
        let status = match read {
            Ok(()) => self.child.wait().map_err(|error| Error::io(source, error))?,
            // The output is still open: a command that keeps writing has not failed.
            Err(error) => match self.failed_by_itself() {
                Some(status) => status,
                None => return Err(error),
            },
        };
        drop(output);
        self.is_over = true;
        if status.success() {
            return Ok(());
        }
        let error_output =
            self.error_output.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let error_output = match error_output.is_empty() {
            true => "it said nothing".to_owned(),
            false => format!("it said: {}", error_output.join(" | ")),
        };
        let end = describe(status);
        Err(Error::format(
            source,
            format!("the command {end}, so nothing is loaded; {error_output}"),
        ))
    }
}

impl RunningCommand {
    /// The failure of a command that has ended or is about to.
    fn failed_by_itself(&mut self) -> Option<ExitStatus> {
        for _ in 0..ENDING_POLLS {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status).filter(|status| !status.success()),
                Ok(None) => std::thread::sleep(ENDING_PAUSE),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        GROUPS.lock().retain(|group| Some(*group) != self.group);
        if self.is_over {
            return;
        }
        // It may have ended already.
        let _ = self.group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.child.wait();
    }
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with status {code}"),
        None => "was killed by a signal".to_owned(),
    }
}

/// The last lines of a command's standard error, truncated.
fn last_lines(errors: ChildStderr) -> Vec<String> {
    let mut reader = BufReader::new(errors);
    let mut kept = VecDeque::new();
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(KEPT_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if !line.is_empty() {
            kept.push_back(line);
        }
        if kept.len() > KEPT_LINES {
            kept.pop_front();
        }
    }
    kept.into()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn run(command: &str) -> (String, Result<()>) {
        let (running, mut output) = RunningCommand::start("s", command).unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        (text, running.finish("s", output, Ok(())))
    }

    #[test]
    fn command_output_and_exit_status_are_returned() {
        let (text, end) = run("printf 'a\\n'; echo b | tr b c");
        assert_eq!(text, "a\nc\n");
        end.unwrap();
        let (text, end) = run("echo a; seq 1 9000 >&2; echo no such table >&2; exit 3");
        assert_eq!(text, "a\n");
        let error = end.unwrap_err().to_string();
        assert_eq!(
            error,
            "s: the command ended with status 3, so nothing is loaded; \
             it said: 8997 | 8998 | 8999 | 9000 | no such table"
        );
        assert!(run("exit 1").1.unwrap_err().to_string().ends_with("it said nothing"));
        assert!(run("kill -9 $$").1.unwrap_err().to_string().contains("killed by a signal"));
    }

    #[test]
    fn first_failure_is_reported() {
        let read = || Err(Error::format("s", "the stream ends"));
        let (running, output) =
            RunningCommand::start("s", "echo no such table >&2; exit 3").unwrap();
        let error = running.finish("s", output, read()).unwrap_err().to_string();
        assert!(error.ends_with("it said: no such table"), "{error}");
        for command in ["echo x", "sleep 60", "yes"] {
            let (running, output) = RunningCommand::start("s", command).unwrap();
            let error = running.finish("s", output, read()).unwrap_err().to_string();
            assert_eq!(error, "s: the stream ends", "{command}");
        }
    }

    #[test]
    fn dropped_command_is_killed_with_its_children() {
        let begin = Instant::now();
        let (running, output) = RunningCommand::start("s", "sleep 60 & echo $!; wait").unwrap();
        let mut output = BufReader::new(output);
        let mut child = String::new();
        output.read_line(&mut child).unwrap();
        assert!(GROUPS.lock().contains(&running.group.unwrap()));
        let group = running.group;
        drop(running);
        assert!(!GROUPS.lock().iter().any(|other| Some(*other) == group));
        // A zombie process has no command line.
        let line = || std::fs::read(format!("/proc/{}/cmdline", child.trim()));
        while line().is_ok_and(|line| !line.is_empty()) {
            assert!(begin.elapsed() < Duration::from_secs(30), "still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
