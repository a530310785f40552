//! Random statements of several sessions with modes, formats and character sets of their own, over
//! a few names that mean one table after the other; all tables compared at every step, except while
//! the follower is kept behind.
//!
//! `REMORA_SEED` repeats a run, `REMORA_STEPS` is how long it is.

mod statements;

use std::collections::VecDeque;

use remora_peers::Kind;

use self::statements::Statements;
use crate::{
    beside::{Beside, DATABASE, Fault},
    random::Random,
    script::encoded,
    session::{Answer, Session},
};

/// Steps of a run if nobody says otherwise.
const STEPS: usize = 300;
/// Statements that a report shows.
const SHOWN: usize = 60;
/// After so many a run ends: it would only say the same again.
const MOST_FINDINGS: usize = 25;

/// The figures of a run.
#[derive(Default)]
pub struct Figures {
    pub executed: usize,
    pub refused: usize,
    pub comparisons: usize,
    pub rows: usize,
    pub findings: Vec<String>,
}

/// A connection and what it was told.
pub struct Client {
    session: Option<Session>,
    pub modes: String,
    pub client: Option<String>,
    pub in_transaction: bool,
}

impl Client {
    fn new() -> Self {
        Self { session: None, modes: String::new(), client: None, in_transaction: false }
    }

    /// Whether names may stand in double quotes.
    pub fn has_ansi_quotes(&self) -> bool {
        self.modes.contains("ANSI")
    }
}

/// A run.
struct Mixture {
    beside: Beside,
    statements: Statements,
    clients: Vec<Client>,
    history: VecDeque<String>,
    figures: Figures,
    /// Statements until the follower may go on; nothing: it is not kept.
    behind: Option<usize>,
    large: Option<remora_engine::LargeBatch>,
    /// Where the source's binlog ended when all was equal last.
    equal: Option<(String, u64)>,
}

/// Runs random statements and compares.
pub fn run(kind: Kind) -> Figures {
    let steps = std::env::var("REMORA_STEPS").map_or(STEPS, |text| text.parse().unwrap());
    let mut beside = Beside::start(kind, &["--log-bin-trust-function-creators=1"], false);
    beside.clean();
    let path = beside.write_file("rows.txt", "901\t1\t2\n902\t3\tx\n903\t\\N\t5\n");
    let statements = Statements::new(kind, Random::seeded("mixture"), path);
    let mut mixture = Mixture {
        beside,
        statements,
        clients: (0..4).map(|_| Client::new()).collect(),
        history: VecDeque::new(),
        figures: Figures::default(),
        behind: None,
        large: None,
        equal: None,
    };
    for _ in 0..steps {
        mixture.step();
        if mixture.figures.findings.len() >= MOST_FINDINGS {
            break;
        }
    }
    mixture.catch_up();
    mixture.figures
}

impl Mixture {
    fn step(&mut self) {
        let random = &mut self.statements.random;
        match self.behind {
            Some(0) => self.catch_up(),
            Some(left) => self.behind = Some(left - 1),
            None if random.chance(3) => {
                self.behind = Some(1 + random.below(15));
                match random.chance(50) {
                    true => self.beside.close(),
                    false => self.large = Some(self.beside.database().begin_large().unwrap()),
                }
                self.history.push_back("-- behind from here on".to_owned());
            }
            None => {}
        }
        let place = self.clients.iter().position(|client| client.in_transaction);
        let random = &mut self.statements.random;
        let place = match place {
            Some(place) if random.chance(90) => place,
            _ => random.below(self.clients.len()),
        };
        self.statements.learn(&mut self.beside.connection);
        let statement = self.statements.next(&mut self.clients[place]);
        self.send(place, &statement);
        if self.behind.is_none() {
            self.compare();
        }
    }

    fn catch_up(&mut self) {
        if self.behind.take().is_none() {
            return;
        }
        match self.large.take() {
            Some(large) => drop(large.commit(Vec::new()).unwrap()),
            None => self.beside.open(),
        }
        self.history.push_back("-- not behind any more".to_owned());
        self.compare();
    }

    fn send(&mut self, place: usize, statement: &str) {
        let client = &mut self.clients[place];
        self.history.push_back(format!("{place}> {statement}"));
        if self.history.len() > SHOWN {
            self.history.pop_front();
        }
        if client.session.is_none() {
            *client = Client::new();
            let socket = self.beside.server.socket();
            let Ok(mut session) = Session::connect(&socket, DATABASE) else { return };
            let _ = session.run(b"SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1");
            client.session = Some(session);
        }
        let bytes = encoded(statement, client.client.as_deref());
        match client.session.as_mut().map(|session| session.run(&bytes)) {
            Some(Ok(Answer::Done)) => {
                self.figures.executed += 1;
                statements::note(client, statement);
            }
            Some(Ok(Answer::Refused(code, message))) => {
                self.figures.refused += 1;
                let short: String = message.chars().take(60).collect();
                self.history.push_back(format!("-- refused: {code} {short}"));
            }
            _ => client.session = None,
        }
    }

    fn commit_open(&mut self) {
        let open: Vec<_> =
            (0..self.clients.len()).filter(|&place| self.clients[place].in_transaction).collect();
        open.into_iter().for_each(|place| self.send(place, "COMMIT"));
    }

    fn compare(&mut self) {
        let place = self.beside.binlog_end();
        let mut found = self.beside.compare();
        self.figures.comparisons += 1;
        // What a transaction does to tables without transactions is seen at once, but a source that
        // logs statements logs it at the end. A copy of a MySQL 5.6 waits for the rows that one locks.
        let locks = self.beside.server.kind() == Kind::MySql56;
        let may_end_with_it = |fault: Fault| match fault {
            Fault::Differs => true,
            Fault::Hangs => locks,
            Fault::Fails | Fault::Told => false,
        };
        if found.fault.as_ref().is_some_and(|(fault, _)| may_end_with_it(*fault))
            && self.clients.iter().any(|client| client.in_transaction)
        {
            self.commit_open();
            found = self.beside.compare();
        }
        self.figures.rows += found.rows;
        let fault = match found.fault {
            Some(fault) => Some(fault),
            None if found.told.is_empty() => None,
            None => Some((Fault::Told, format!("{:?}", found.told))),
        };
        let Some((fault, text)) = fault else {
            self.equal = place;
            return;
        };
        let events = self.equal.as_ref().map(|equal| self.beside.events_since(equal));
        let history: Vec<_> = self.history.iter().map(String::as_str).collect();
        let report = format!(
            "{} {}: {text}\n    at {place:?}\n    {}\n    events since all was equal:\n    {}",
            self.beside.server.kind().name(),
            fault.name(),
            history.join("\n    "),
            events.unwrap_or_default().join("\n    ")
        );
        println!("FINDING {report}\n");
        self.figures.findings.push(report);
        self.history.clear();
        self.clients.iter_mut().for_each(|client| client.session = None);
        self.beside.clean();
        self.beside.renew();
        let _ = self.beside.compare();
    }
}
