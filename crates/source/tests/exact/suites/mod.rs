//! The test files of the servers' own suites, run on a real server with a follower beside it, all
//! tables compared while each runs and after it.
//!
//! `REMORA_SUITES` is the directory that `tests/suites/run` fills; `REMORA_FILES` chooses files by
//! a part of their path; `REMORA_MINUTES` ends the run; `REMORA_SEED` is their order.

mod script;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use remora_peers::Kind;

use self::script::Action;
use crate::{
    beside::{Beside, Fault},
    random::Random,
    session::{Answer, Session},
};

/// So many statements are run between two comparisons.
const STRETCH: usize = 15;
/// Longest time for the statements of a file.
const FILE_TIME: Duration = Duration::from_secs(90);

/// Folders of tests that are of statements and tables, not of a server's process or its parts.
const FOLDERS: &[&str] = &[
    "main",
    "t",
    "suite/innodb/t",
    "suite/engines/funcs/t",
    "suite/engines/iuds/t",
    "suite/parts/t",
    "suite/binlog/t",
    "suite/compat/oracle/t",
    "suite/versioning/t",
    "suite/vcol/t",
    "suite/sql_sequence",
    "suite/jp/t",
    "suite/gcol/t",
    "suite/json/t",
    "suite/period/t",
    "suite/funcs_1/t",
    "suite/maria",
    "suite/stress/t",
    "suite/heap",
    "suite/csv",
    "suite/merge",
    "suite/innodb_fts/t",
    "suite/innodb_gis/t",
    "suite/gis/t",
    "suite/collations/t",
    "suite/roles",
    "suite/archive",
    "suite/unit",
    "suite/plugins/t",
    "suite/atomic",
    "suite/rpl/t",
];

/// What a statement may not hold: what ends or blocks a server, what other files would feel, and
/// what is not logged by wish.
const PASSED_OVER: &[&str] = &[
    "shutdown",
    "set global",
    "set persist",
    "@@global.",
    "@@persist",
    "sql_log_bin",
    "gtid_",
    "kill ",
    "change master",
    "change replication",
    "start slave",
    "stop slave",
    "start replica",
    "stop replica",
    "reset master",
    "reset binary",
    "reset slave",
    "reset replica",
    "install plugin",
    "install soname",
    "uninstall",
    "debug_sync",
    "debug_dbug",
    "@@debug",
    "dbug",
    "sleep(",
    "get_lock",
    "purge ",
    "with read lock",
    "server_id",
    "clone ",
    "drop database mysql",
    "drop table mysql.",
    "mysql.user",
    "mysql.db",
    "offline",
    "benchmark(",
    "set password",
    "global ",
    "pseudo_",
    "xa prepare",
    "start group",
    "install component",
    "rename user",
    "root@localhost",
    "'root'@'localhost'",
    "follower",
    "skip_replication",
    "alter instance",
    "truncate table mysql",
    "into mysql.",
    "update mysql.",
    "from mysql.",
    "mysql.innodb",
    "restart",
    "backup stage",
    "lock instance",
];

/// The figures of a run.
#[derive(Default)]
pub struct Figures {
    pub files: usize,
    pub equal: Vec<String>,
    pub different: Vec<String>,
    pub statements: usize,
    pub refused: usize,
    pub comparisons: usize,
    pub rows: usize,
    pub tables: usize,
    /// Tables that were told as refused or stopped, by the reason's first words.
    pub told: BTreeMap<String, usize>,
}

/// Runs the files of a server's suite until the time is over.
pub fn run(kind: Kind) -> Figures {
    let root =
        PathBuf::from(std::env::var("REMORA_SUITES").expect("REMORA_SUITES, see tests/suites/run"));
    let minutes = std::env::var("REMORA_MINUTES").map_or(30, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut beside = start(kind);
    let mut figures = Figures::default();
    for path in files(&root) {
        if Instant::now() > end {
            break;
        }
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let begun = Instant::now();
        let actions = script::read(&root, &path);
        let mut file = File::new(&mut beside, &root, &mut figures);
        file.run(&actions);
        let faults = std::mem::take(&mut file.faults);
        let statements = file.statements;
        drop(file);
        figures.files += 1;
        match faults.is_empty() {
            true => figures.equal.push(name.clone()),
            false => figures.different.push(name.clone()),
        }
        println!(
            "{name}: {statements} statements, {:.1} s{}",
            begun.elapsed().as_secs_f64(),
            if faults.is_empty() { "" } else { ", DIFFERENT" }
        );
        faults.iter().for_each(|fault| println!("  {fault}"));
    }
    figures
}

fn start(kind: Kind) -> Beside {
    let options: &[&str] = match kind.is_mariadb() {
        true => &[
            "--log-bin-trust-function-creators=1",
            "--character-set-server=latin1",
            "--max-statement-time=15",
        ],
        false => &[
            "--log-bin-trust-function-creators=1",
            "--max-execution-time=15000",
            "--sql-generate-invisible-primary-key=ON",
        ],
    };
    Beside::start(kind, options, true)
}

/// The files, in an order that is another for each seed, so that a short run is a sample.
fn files(root: &Path) -> Vec<PathBuf> {
    let wanted = std::env::var("REMORA_FILES").unwrap_or_default();
    let mut files = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| {
            let name = path.display().to_string();
            name.ends_with(".test") && wanted.split(',').any(|wanted| name.contains(wanted))
        }));
    }
    files.sort();
    let mut random = Random::seeded("suites");
    for place in (1..files.len()).rev() {
        files.swap(place, random.below(place + 1));
    }
    files
}

/// A file while it runs.
struct File<'f> {
    beside: &'f mut Beside,
    root: &'f Path,
    figures: &'f mut Figures,
    sessions: HashMap<String, Session>,
    current: String,
    databases: HashMap<String, String>,
    /// Since the last comparison.
    stretch: Vec<String>,
    /// Somebody holds locks: nothing can be compared.
    locked: bool,
    statements: usize,
    faults: Vec<String>,
}

impl<'f> File<'f> {
    fn new(beside: &'f mut Beside, root: &'f Path, figures: &'f mut Figures) -> Self {
        Self {
            beside,
            root,
            figures,
            sessions: HashMap::new(),
            current: "default".to_owned(),
            databases: HashMap::new(),
            stretch: Vec::new(),
            locked: false,
            statements: 0,
            faults: Vec::new(),
        }
    }

    fn run(&mut self, actions: &[Action]) {
        self.beside.clean_for("test");
        if self.beside.compare().fault.is_some() {
            self.beside.renew();
        }
        let begun = Instant::now();
        for action in actions {
            if begun.elapsed() > FILE_TIME {
                break;
            }
            match action {
                Action::Connection(name, database) => {
                    self.current.clone_from(name);
                    if let Some(database) = database {
                        self.sessions.remove(name);
                        self.databases.insert(name.clone(), database.clone());
                    }
                }
                Action::Disconnect(name) => drop(self.sessions.remove(name)),
                Action::Statement(statement) => self.statement(statement),
            }
            if self.stretch.len() >= STRETCH && !self.locked {
                self.compare();
            }
        }
        self.sessions.clear();
        self.compare();
    }

    fn statement(&mut self, statement: &str) {
        let small = statement.to_ascii_lowercase();
        if PASSED_OVER.iter().any(|words| small.contains(words)) {
            return;
        }
        let begins = |words: &[&str]| words.iter().any(|word| small.starts_with(word));
        if begins(&["lock ", "flush ", "handler ", "begin", "start ", "xa ", "set autocommit"]) {
            self.locked = true;
        }
        if begins(&["unlock", "commit", "rollback"]) {
            self.locked = false;
        }
        let Some(session) = self.session() else { return };
        let std_data = self.root.join("std_data").display().to_string();
        let statement = statement.replace("../../std_data", &std_data);
        let bytes: Vec<u8> = statement.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect();
        let mut session = session;
        let answer = session.run(&bytes);
        let shown: String = statement.chars().take(200).collect();
        match answer {
            Ok(Answer::Done) => {
                self.figures.statements += 1;
                self.statements += 1;
                self.stretch.push(shown.replace('\n', " "));
            }
            Ok(Answer::Refused(..)) => {
                self.figures.refused += 1;
                self.stretch.push(format!("-- refused: {}", shown.replace('\n', " ")));
            }
            Err(_) => return,
        }
        self.sessions.insert(self.current.clone(), session);
    }

    /// The current session, which is made where it is new.
    fn session(&mut self) -> Option<Session> {
        if let Some(session) = self.sessions.remove(&self.current) {
            return Some(session);
        }
        let database = self.databases.get(&self.current).map_or("test", String::as_str);
        let socket = self.beside.server.socket();
        let connect = |database| Session::connect(&socket, database).ok();
        let mut session = connect(database).or_else(|| connect("test"))?;
        let mut set = |text: &str| drop(session.run(text.as_bytes()));
        set("SET lock_wait_timeout = 2");
        set("SET innodb_lock_wait_timeout = 2");
        if self.beside.server.kind().is_mariadb() {
            set("SET NAMES latin1");
        }
        Some(session)
    }

    fn compare(&mut self) {
        self.figures.comparisons += 1;
        let found = self.beside.compare();
        self.figures.rows += found.rows;
        self.figures.tables += found.tables;
        for reason in found.told.values() {
            let words: String = reason.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
            *self.figures.told.entry(words).or_default() += 1;
        }
        if let Some((fault, text)) = found.fault {
            let mut shown =
                format!("{} {}", fault.name(), text.chars().take(600).collect::<String>());
            for statement in &self.stretch {
                shown.push_str(&format!("\n    {statement}"));
            }
            if fault == Fault::Differs && self.beside.compare().fault.is_none() {
                shown.push_str("\n    (right at a second look)");
            }
            self.faults.push(shown);
            self.beside.renew();
            let _ = self.beside.compare();
        }
        self.stretch.clear();
    }
}
