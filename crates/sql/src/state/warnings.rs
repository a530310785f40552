//! Warnings of a statement, kept for SHOW WARNINGS until the next statement.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_mysql::ErrorCode;

use crate::Error;

/// Most warnings that are kept of one statement; more are counted only.
const MAX_KEPT: usize = 1_024;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Worth knowing.
    Note,
    /// Something was not done as asked.
    Warning,
    /// The statement failed.
    Error,
}

/// One line of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// How bad it is.
    pub level: Level,
    /// MySQL's code.
    pub code: ErrorCode,
    /// The text.
    pub message: String,
}

/// The warnings of a session's last statement. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    list: Vec<Warning>,
    count: u64,
    watch: Watch,
}

/// What becomes of warnings that are errors where a statement writes in strict mode.
#[derive(Debug, Default)]
enum Watch {
    /// They are kept.
    #[default]
    Off,
    /// The first is to end the statement; this many were kept before.
    On(usize, u64),
    /// It came.
    Refused(usize, u64, Error),
}

/// The codes of which MySQL makes errors where a statement writes in strict mode.
const REFUSED: [ErrorCode; 13] = [
    ErrorCode::TruncatedValue,
    ErrorCode::WrongValueForFunction,
    ErrorCode::OutOfRange,
    ErrorCode::DivisionByZero,
    ErrorCode::WrongValueForColumn,
    ErrorCode::DataTruncated,
    ErrorCode::DataTooLong,
    ErrorCode::ColumnCannotBeNull,
    ErrorCode::NoDefault,
    ErrorCode::CutByGroupConcat,
    ErrorCode::DateOverflow,
    ErrorCode::InvalidLogarithm,
    ErrorCode::FunctionResultTooLong,
];

impl Level {
    /// MySQL's word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Note => "Note",
            Self::Warning => "Warning",
            Self::Error => "Error",
        }
    }
}

impl Warning {
    pub(crate) fn new(level: Level, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { level, code, message: message.into() }
    }
}

impl Warnings {
    /// Adds one.
    pub(crate) fn push(&self, warning: Warning) {
        let mut kept = self.kept.lock();
        if let Watch::On(length, count) = kept.watch
            && warning.level == Level::Warning
            && REFUSED.contains(&warning.code)
        {
            let refused = Error::new(warning.code, warning.message.clone());
            kept.watch = Watch::Refused(length, count, refused);
        }
        kept.count += 1;
        if kept.list.len() < MAX_KEPT {
            kept.list.push(warning);
        }
    }

    /// Adds one, unless the same one is kept already.
    pub(crate) fn push_once(&self, warning: Warning) {
        let is_kept = self.kept.lock().list.contains(&warning);
        if !is_kept {
            self.push(warning);
        }
    }

    /// Begins to look for warnings that are errors where a statement writes in strict mode.
    pub(crate) fn watch(&self) {
        let mut kept = self.kept.lock();
        kept.watch = Watch::On(kept.list.len(), kept.count);
    }

    /// Ends what [`Warnings::watch`] began: the first such warning, in whose place all since are
    /// forgotten.
    pub(crate) fn refused(&self) -> Result<(), Error> {
        let mut kept = self.kept.lock();
        match std::mem::take(&mut kept.watch) {
            Watch::Refused(length, count, error) => {
                kept.list.truncate(length);
                kept.count = count;
                Err(error)
            }
            Watch::Off | Watch::On(..) => Ok(()),
        }
    }

    /// Keeps the error that ended a statement.
    pub(crate) fn push_error(&self, error: &Error) {
        self.push(Warning::new(Level::Error, error.code, error.message.clone()));
    }

    /// How many there were, as the wire tells it.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.kept.lock().count).unwrap_or(u16::MAX)
    }

    /// How many of those that are kept are errors.
    pub(crate) fn errors(&self) -> u64 {
        let kept = self.kept.lock();
        kept.list.iter().filter(|warning| warning.level == Level::Error).count() as u64
    }

    /// Those that are kept.
    pub(crate) fn list(&self) -> Vec<Warning> {
        self.kept.lock().list.clone()
    }

    /// Forgets them: a new statement begins.
    pub(crate) fn clear(&self) {
        let mut kept = self.kept.lock();
        if kept.count > 0 {
            *kept = Kept::default();
        }
    }
}
