//! Commands of the line protocol.

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

/// A SEARCH, with what decides the form of its reply.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The request to the engine.
    pub request: SearchRequest,
    /// Whether LIMIT was given; otherwise the limit is the default.
    pub limit_given: bool,
    /// Whether OFFSET was given.
    pub offset_given: bool,
    /// Whether `CURSOR` or `AFTER` was given. Then the reply contains the next page's cursor.
    pub cursor: bool,
}

impl Search {
    /// Whether the reply has a score column.
    pub fn returns_score(&self) -> bool {
        self.request.sort.iter().any(|key| key.by == SortBy::Score)
    }
}

/// A GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The table.
    pub table: String,
    /// The key as it was written. [`super::split_key`] splits a composite one.
    pub key: String,
    /// The columns to return; `["*"]` means all. If empty, the reply has the indexed columns.
    pub fields: Vec<String>,
}

/// An AUTH.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    /// The user, if one is given.
    pub user: Option<String>,
    /// The password of the user, or the token.
    pub secret: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Auth({:?}, ***)", self.user)
    }
}

/// A DUMP. File names are as they were written.
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

/// A REPLICATION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// `STATUS`
    Status,
    /// `STOP`
    Stop,
    /// `START`
    Start,
}

/// A SYNC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    /// `<table>`
    Start(String),
    /// `STATUS`
    Status,
    /// `STOP [<table>]`
    Stop(Option<String>),
}

/// A WAIT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The transactions, as they were written.
    pub gtids: String,
    /// The longest wait.
    pub timeout: Duration,
}

/// A CACHE.
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

/// A CONFIG.
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
    /// Whether the command requires AUTH if a token is configured.
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

    /// The table that a reading command names.
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
