//! `remora shell`: a prompt for a server, or for a data directory without one.

mod editor;
mod present;

use std::{io::IsTerminal, process::ExitCode, time::Instant};

use super::{ShellOptions, line_client::LineClient, output};
use crate::{Result, line::LocalSession, open::open_database, settings::Settings};
use editor::Editor;

pub(super) use present::present;

const HELP: &str = "\
SEARCH <table> <text> [AND|OR|NOT ...] [FILTER col op value] [SORT col ASC|DESC] [LIMIT n]
       [OFFSET n] [FIELDS a,b] [HIGHLIGHT] [FUZZY [1|2]]
COUNT <table> <text> [FILTER ...]       how many rows match
GET <table> <key> [FIELDS a,b]          one row
FACET <table> <column> [text]           how often each value comes
INFO                                    the server's figures
PUT <table> {json}                      write a row; [{...},{...}] writes several
DELETE <table> <key> ...                take rows out
SCHEMA <table>                          columns, key and text indexes
SHOW VARIABLES [LIKE 'pattern'] · SET name = value · CONFIG HELP [name]
DUMP SAVE [file] · OPTIMIZE [table] · CACHE STATS · DEBUG ON · AUTH <user> <password>
quit                                    leaves; the Tab key completes, the arrow keys recall";

/// The answering side: a server behind a connection, or a database in this process.
enum Peer {
    Remote(LineClient),
    Local(LocalSession),
}

impl Peer {
    fn ask(&mut self, request: &str) -> Result<String> {
        match self {
            Self::Remote(client) => client.ask(request).map(str::to_owned),
            Self::Local(session) => Ok(session.ask(request)),
        }
    }

    /// The tables' names for completion; empty if the server does not tell.
    fn tables(&mut self) -> Vec<String> {
        let info = self.ask("INFO").unwrap_or_default();
        let line = info.lines().find_map(|line| line.strip_prefix("tables: "));
        let names = line.unwrap_or("").split(',').filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }
}

/// Reads and answers requests until the user leaves.
///
/// # Errors
/// [`crate::Error::Io`] or [`crate::Error::Remote`] if the connection fails, [`crate::Error::Usage`] if there is no
/// password for the user. For a data directory those of [`open_database`], and [`crate::Error::Engine`] if it cannot be
/// closed. An error reply to a request only sets the exit code.
pub fn shell(options: &ShellOptions) -> Result<ExitCode> {
    let mut peer = match (&options.data, &options.socket) {
        (None, Some(socket)) => Peer::Remote(LineClient::connect_to_socket(socket)?),
        (None, None) => Peer::Remote(LineClient::connect(&options.server)?),
        (Some(data), _) => {
            let settings = Settings { data: data.clone(), ..Settings::default() }.finish()?;
            let database = open_database(&settings)?;
            Peer::Local(LocalSession::new(settings, database))
        }
    };
    if let (Peer::Remote(client), Some(user)) = (&mut peer, &options.user) {
        client.log_in(user)?;
    }
    let failed = if options.execute.is_empty() {
        run_interactive(&mut peer, options)?;
        false
    } else {
        let mut failed = false;
        for request in &options.execute {
            failed |= !answer(&mut peer, request, false)?;
        }
        failed
    };
    if let Peer::Local(session) = peer {
        session.close()?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_interactive(peer: &mut Peer, options: &ShellOptions) -> Result<()> {
    let on_terminal = std::io::stdin().is_terminal();
    if on_terminal {
        let tables = peer.tables();
        let path = options.data.as_ref().or(options.socket.as_ref());
        let place = path.map_or(options.server.clone(), |path| path.display().to_string());
        println!("{place}: {}. 'help' tells what can be asked, 'quit' leaves.", name(&tables));
    }
    let mut editor = Editor::new(peer.tables());
    while let Some(line) = editor.read_line()? {
        match line.trim().trim_end_matches(';').trim() {
            "" => {}
            "quit" | "exit" | "\\q" => break,
            "help" | "?" | "\\h" => println!("{HELP}"),
            request => {
                answer(peer, request, on_terminal)?;
            }
        }
    }
    Ok(())
}

fn name(tables: &[String]) -> String {
    match tables {
        [] => "no table yet".to_owned(),
        [table] => format!("table {table}"),
        _ => format!("tables {}", tables.join(", ")),
    }
}

/// Sends a request and prints the reply; false for an error reply.
fn answer(peer: &mut Peer, request: &str, timed: bool) -> Result<bool> {
    let start = Instant::now();
    let reply = peer.ask(request)?;
    let time = start.elapsed();
    print!("{}", present(&reply));
    if timed {
        println!("({})", output::elapsed(time));
    }
    Ok(!reply.starts_with("ERROR "))
}
