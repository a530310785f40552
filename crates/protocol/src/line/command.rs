//! Commands: what a frame asks for.

use std::{fmt, time::Duration};

use remora_engine::{FacetRequest, SearchRequest, Selection, SortBy};

/// A parsed request.
#[derive(Clone, Debug)]
pub enum Command {
    /// `SEARCH <table> <text> …`
    Search(Box<Search>),
    /// `COUNT <table> <text> …`
    Count(Selection),
    /// `GET <table> <key> [FIELDS …]`
    Get(Get),
    /// `FACET <table> <column> …`
    Facet(FacetRequest),
    /// `INFO`
    Info,
    /// `AUTH <token>` or `AUTH <user> <password>`
    Auth(Auth),
    /// `DUMP …`
    Dump(Dump),
    /// `REPLICATION …`
    Replication(Replication),
    /// `SYNC …`
    Sync(Sync),
    /// `OPTIMIZE [<table>]`
    Optimize(Option<String>),
    /// `DEBUG ON` or `DEBUG OFF`
    Debug(bool),
    /// `POSITION ON` or `POSITION OFF`
    Position(bool),
    /// `WAIT <gtid-set> [<seconds>]`
    Wait(Wait),
    /// `CACHE …`
    Cache(Cache),
    /// `CONFIG …`
    Config(Config),
    /// `SET name = value[, …]`: at least one pair.
    Set(Vec<(String, String)>),
    /// `SHOW VARIABLES [LIKE 'pattern']`
    ShowVariables(Option<String>),
}

/// SEARCH with what the reply's form depends on.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// What the engine is asked.
    pub request: SearchRequest,
    /// Whether the limit was written; if not, it is the default.
    pub limit_given: bool,
    /// Whether the offset was written.
    pub offset_given: bool,
    /// Whether `CURSOR` or `AFTER` was written: the reply then names the next page's cursor.
    pub cursor: bool,
}

impl Search {
    /// Whether the reply has a column for the score.
    pub fn returns_score(&self) -> bool {
        self.request.sort.iter().any(|key| key.by == SortBy::Score)
    }
}

/// GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The table.
    pub table: String,
    /// The key as typed; [`super::split_key`] cuts a composite one.
    pub key: String,
    /// Columns to return; `["*"]` is all; empty means the reply lists the indexed columns.
    pub fields: Vec<String>,
}

/// AUTH.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    /// The user, where one is named.
    pub user: Option<String>,
    /// The user's password, or the token.
    pub secret: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Auth({:?}, ***)", self.user)
    }
}

/// DUMP. File names are as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dump {
    /// `SAVE [<file>]`
    Save(Option<String>),
    /// `LOAD <file>`
    Load(String),
    /// `VERIFY <file>`
    Verify(String),
    /// `INFO <file>`
    Info(String),
    /// `STATUS`
    Status,
}

/// REPLICATION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// `STATUS`
    Status,
    /// `STOP`
    Stop,
    /// `START`
    Start,
}

/// SYNC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    /// `<table>`
    Start(String),
    /// `STATUS`
    Status,
    /// `STOP [<table>]`
    Stop(Option<String>),
}

/// WAIT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The transactions, as typed.
    pub gtids: String,
    /// How long to wait at most.
    pub timeout: Duration,
}

/// CACHE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// `CLEAR [<table>]`
    Clear(Option<String>),
    /// `ENABLE`
    Enable,
    /// `DISABLE`
    Disable,
    /// `STATS`
    Stats,
}

/// CONFIG.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Config {
    /// `[SHOW [<path>]]`
    Show(Option<String>),
    /// `HELP [<path>]`
    Help(Option<String>),
    /// `VERIFY <file>`
    Verify(String),
}

impl Command {
    /// Whether the command needs AUTH where a token is set.
    pub fn is_administrative(&self) -> bool {
        !matches!(
            self,
            Self::Search(_)
                | Self::Count(_)
                | Self::Get(_)
                | Self::Facet(_)
                | Self::Info
                | Self::Position(_)
                | Self::Wait(_)
                | Self::Auth(_)
        )
    }

    /// The table a reading command is about.
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::Search(search) => Some(&search.request.selection.table),
            Self::Count(selection) => Some(&selection.table),
            Self::Get(get) => Some(&get.table),
            Self::Facet(request) => Some(&request.selection.table),
            _ => None,
        }
    }
}
