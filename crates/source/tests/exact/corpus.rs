//! The statements of the files beside this, compared after each.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
    thread::sleep,
    time::Duration,
};

use remora_engine::LargeBatch;
use remora_peers::Kind;

use crate::{
    beside::{Beside, DATABASE, Fault, Found},
    random::Random,
    script::{Case, Script, Step, encoded},
    session::{Answer, Session},
};

/// How a case is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Compared after each statement.
    Live,
    /// From some statement on nobody follows, to the end of the case.
    Closed,
    /// From some statement on what is received cannot be written, to the end of the case.
    Stalled,
}

impl Manner {
    fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Closed => "closed",
            Self::Stalled => "stalled",
        }
    }
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// `server manner file: case` of each that ran.
    pub cases: Vec<String>,
    pub executed: usize,
    pub refused: usize,
    pub comparisons: usize,
    pub rows: usize,
    /// `fault` and what stands in `cases`.
    pub findings: BTreeSet<String>,
}

/// All files, in the order of their names.
pub fn scripts() -> Vec<Script> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exact/statements");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let wanted = std::env::var("REMORA_SCRIPT").unwrap_or_default();
    paths
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            Script::parse(&name, &fs::read_to_string(path).unwrap())
        })
        .filter(|script| script.name.contains(&wanted))
        .collect()
}

/// Runs every case that is for this server.
pub fn run(kind: Kind, manner: Manner) -> Figures {
    let mut random = Random::seeded(manner.name());
    let mut figures = Figures::default();
    let mut usual = None;
    for script in scripts() {
        if !script.cases.iter().any(|case| case.is_for(kind)) {
            continue;
        }
        let mut own = None;
        let beside = match script.server_options.is_empty() {
            true => usual.get_or_insert_with(|| start(kind, &[])),
            false => own.insert(start(kind, &script.server_options)),
        };
        let wanted = std::env::var("REMORA_CASE").unwrap_or_default();
        for case in script.cases.iter().filter(|case| case.is_for(kind)) {
            if !case.name.contains(&wanted) {
                continue;
            }
            let name = format!("{} {} {}: {}", kind.name(), manner.name(), script.name, case.name);
            if std::env::var("REMORA_VERBOSE").is_ok() {
                println!("{name}");
            }
            let from = match manner {
                Manner::Live => usize::MAX,
                _ => random.below(case.statements().max(1)),
            };
            figures.cases.push(name.clone());
            Run::new(beside, case, name, manner, from, &mut figures).run();
        }
    }
    figures
}

fn start(kind: Kind, options: &[String]) -> Beside {
    let mut all = vec!["--event-scheduler=ON"];
    all.extend(options.iter().map(String::as_str));
    let beside = Beside::start(kind, &all, false);
    beside.write_file("rows.txt", "901\t1\t2\tone\n902\t3\t4\ttwo\n903\t\\N\t5\t\\N\n");
    beside
}

/// A case while it runs.
struct Run<'r> {
    beside: &'r mut Beside,
    case: &'r Case,
    name: String,
    manner: Manner,
    /// From this statement on nothing is applied.
    from: usize,
    figures: &'r mut Figures,
    sessions: HashMap<String, (Session, Option<String>)>,
    current: String,
    told: Vec<(String, String)>,
    done: Vec<String>,
    place: Option<(String, u64)>,
    quiet: bool,
    soon: bool,
    /// Nothing is applied: what follows is closed, or waits for this.
    behind: Option<Option<LargeBatch>>,
    /// Following has ended or hangs: the rest of the case would only wait for it again.
    given_up: bool,
}

impl<'r> Run<'r> {
    fn new(
        beside: &'r mut Beside,
        case: &'r Case,
        name: String,
        manner: Manner,
        from: usize,
        figures: &'r mut Figures,
    ) -> Self {
        Self {
            beside,
            case,
            name,
            manner,
            from,
            figures,
            sessions: HashMap::new(),
            current: "main".to_owned(),
            told: Vec::new(),
            done: Vec::new(),
            place: None,
            quiet: false,
            soon: false,
            behind: None,
            given_up: false,
        }
    }

    fn run(mut self) {
        self.beside.clean();
        // What is wrong already is not this case's.
        let found = self.beside.compare();
        if found.fault.is_some() || !found.told.is_empty() {
            self.beside.renew();
        }
        self.place = self.beside.binlog_end();
        let (mut statements, mut large) = (0, None);
        for step in &self.case.steps {
            if self.given_up {
                return;
            }
            if let Step::Statement(statement) = step {
                if statements == self.from {
                    match self.manner {
                        Manner::Closed => self.beside.close(),
                        _ => large = Some(self.beside.database().begin_large().unwrap()),
                    }
                }
                statements += 1;
                self.statement(statement, statements > self.from);
            } else {
                self.step(step, statements > self.from);
            }
        }
        if statements > self.from {
            match large.take() {
                Some(large) => drop(large.commit(Vec::new()).unwrap()),
                None => self.beside.open(),
            }
            self.compare();
        }
    }

    fn step(&mut self, step: &Step, behind: bool) {
        match step {
            Step::Statement(_) => {}
            Step::Session { name, client } => {
                self.current.clone_from(name);
                if let Some(client) = client {
                    let session = self.beside.session().unwrap();
                    self.sessions.insert(name.clone(), (session, Some(client.clone())));
                    self.send(&format!("SET NAMES {client}"));
                }
            }
            Step::Quiet => self.quiet = true,
            Step::Compare => {
                self.quiet = false;
                match self.behind.take() {
                    Some(Some(large)) => drop(large.commit(Vec::new()).unwrap()),
                    Some(None) => self.beside.open(),
                    None => {}
                }
                if !behind {
                    self.compare();
                }
            }
            // Nothing is applied anyhow.
            Step::Behind { .. } if behind || self.manner != Manner::Live => {}
            Step::Behind { stalled: true } => {
                self.quiet = true;
                self.behind = Some(Some(self.beside.database().begin_large().unwrap()));
            }
            Step::Behind { stalled: false } => {
                self.quiet = true;
                self.beside.close();
                self.behind = Some(None);
            }
            Step::Restart if behind => {}
            Step::Restart => {
                self.beside.close();
                self.beside.open();
                self.compare();
            }
            Step::Wait(seconds) => {
                sleep(Duration::from_secs_f64(*seconds));
                if !behind && !self.quiet {
                    self.compare();
                }
            }
            Step::Told { table, words } => {
                self.told.push((format!("{DATABASE}.{table}"), words.clone()));
            }
            Step::Soon => self.soon = true,
        }
    }

    fn statement(&mut self, statement: &str, behind: bool) {
        match self.send(statement) {
            Some(Answer::Done) => self.figures.executed += 1,
            Some(Answer::Refused(code, message)) => {
                self.figures.refused += 1;
                self.done.push(format!("-- refused: {code} {message}"));
            }
            None => self.done.push("-- the connection ended".to_owned()),
        }
        if !behind && !self.quiet {
            self.compare();
        }
    }

    /// Runs a statement in the current session, which is made first where it is new.
    fn send(&mut self, statement: &str) -> Option<Answer> {
        self.done.push(format!("{}> {statement}", self.current));
        if !self.sessions.contains_key(&self.current) {
            let session = self.beside.session().ok()?;
            self.sessions.insert(self.current.clone(), (session, None));
        }
        let files = self.beside.files.path().to_string_lossy().into_owned();
        let (session, client) = self.sessions.get_mut(&self.current)?;
        let bytes = encoded(&statement.replace("$FILES", &files), client.as_deref());
        let answer = session.run(&bytes).ok();
        if answer.is_none() {
            self.sessions.remove(&self.current);
        }
        answer
    }

    fn compare(&mut self) {
        self.figures.comparisons += 1;
        if self.beside.connection.ping().is_err() {
            self.beside.reconnect();
        }
        let mut found = self.beside.compare();
        for _ in 0..if std::mem::take(&mut self.soon) { 100 } else { 0 } {
            if found.fault.is_none() {
                break;
            }
            sleep(Duration::from_millis(100));
            found = self.beside.compare();
        }
        self.figures.rows += found.rows;
        if let Some((fault, text)) = self.fault(&found) {
            self.report(fault, text);
            self.given_up = matches!(fault, Fault::Fails | Fault::Hangs);
            if fault == Fault::Told {
                // Said once.
                self.told.extend(found.told);
            } else {
                self.beside.renew();
                let _ = self.beside.compare();
            }
        }
        self.place = self.beside.binlog_end();
    }

    /// What is wrong, tables that may be told as stopped aside.
    fn fault(&self, found: &Found) -> Option<(Fault, String)> {
        if found.fault.is_some() {
            return found.fault.clone();
        }
        let allowed = |(table, reason): &(&String, &String)| {
            self.told.iter().any(|(name, words)| name == *table && reason.contains(words))
        };
        let unexpected: Vec<_> = found.told.iter().filter(|told| !allowed(told)).collect();
        match unexpected.is_empty() {
            true => None,
            false => Some((Fault::Told, format!("{unexpected:?}"))),
        }
    }

    fn report(&mut self, fault: Fault, mut text: String) {
        if fault == Fault::Differs {
            sleep(Duration::from_millis(1500));
            let again = self.beside.compare().fault.map(|(fault, _)| fault);
            text.push_str(match again {
                Some(_) => "\n      (still so after 1.5 s)",
                None => "\n      (right after 1.5 s)",
            });
        }
        let mut report = format!("{} {}: {text}\n    statements:", self.name, fault.name());
        let line = format!("{} {}", fault.name(), self.name);
        let already = !self.figures.findings.insert(line);
        let newest = if already { self.done.len().saturating_sub(2) } else { 0 };
        let done = self.done.iter().skip(newest);
        done.for_each(|line| report.push_str(&format!("\n      {line}")));
        report.push_str("\n    events:");
        if let Some(place) = &self.place {
            for event in self.beside.events_since(place) {
                report.push_str(&format!("\n      {event}"));
            }
        }
        println!("FINDING {report}\n");
    }
}
