//! The warnings of a statement. SHOW WARNINGS reads them until the next statement.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_mysql::ErrorCode;

use crate::Error;

/// The most warnings stored of one statement. Further ones are only counted.
const MAX_KEPT: usize = 1_024;

/// The severity of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarningLevel {
    /// For information only.
    Note,
    /// Something was not done as asked.
    Warning,
    /// The statement failed.
    Error,
}

/// One line of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub level: WarningLevel,
    pub code: ErrorCode,
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

/// Watches for warnings that become errors when a statement writes in strict mode.
#[derive(Debug, Default)]
enum Watch {
    /// Warnings are only stored.
    #[default]
    Off,
    /// Watching. Holds the number of stored warnings and their count before the watch began.
    On(usize, u64),
    /// A warning came that must end the statement, as this error. The numbers are those of `On`.
    Refused(usize, u64, Error),
}

/// Warnings that become errors when a statement writes in strict mode.
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

impl WarningLevel {
    /// The level in MySQL's output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Note => "Note",
            Self::Warning => "Warning",
            Self::Error => "Error",
        }
    }
}

impl Warning {
    pub(crate) fn new(level: WarningLevel, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { level, code, message: message.into() }
    }
}

impl Warnings {
    pub(crate) fn push(&self, warning: Warning) {
        let mut kept = self.kept.lock();
        if let Watch::On(length, count) = kept.watch
            && warning.level == WarningLevel::Warning
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

    /// Adds a warning, unless the same one is stored already.
    pub(crate) fn push_once(&self, warning: Warning) {
        let is_kept = self.kept.lock().list.contains(&warning);
        if !is_kept {
            self.push(warning);
        }
    }

    /// The place of the next warning, for [`Warnings::forget_since`].
    pub(crate) fn mark(&self) -> (usize, u64) {
        let kept = self.kept.lock();
        (kept.list.len(), kept.count)
    }

    /// Removes the warnings from a place on.
    pub(crate) fn forget_since(&self, (length, count): (usize, u64)) {
        let mut kept = self.kept.lock();
        kept.list.truncate(length);
        kept.count = count;
    }

    /// Starts to watch for warnings that are errors in strict mode.
    pub(crate) fn watch(&self) {
        let mut kept = self.kept.lock();
        kept.watch = Watch::On(kept.list.len(), kept.count);
    }

    /// Stops the watch that [`Warnings::watch`] began. Returns the first warning that is an error,
    /// after removing it and all later ones.
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

    /// Stores the error that ended a statement.
    pub(crate) fn push_error(&self, error: &Error) {
        self.push(Warning::new(WarningLevel::Error, error.code, error.message.clone()));
    }

    /// The number of warnings, capped at what the protocol's 16 bits can hold.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.kept.lock().count).unwrap_or(u16::MAX)
    }

    /// How many of the stored warnings are errors.
    pub(crate) fn errors(&self) -> u64 {
        let kept = self.kept.lock();
        kept.list.iter().filter(|warning| warning.level == WarningLevel::Error).count() as u64
    }

    /// The stored warnings.
    pub(crate) fn list(&self) -> Vec<Warning> {
        self.kept.lock().list.clone()
    }

    /// Clears the warnings when a new statement begins.
    pub(crate) fn clear(&self) {
        let mut kept = self.kept.lock();
        if kept.count > 0 {
            *kept = Kept::default();
        }
    }
}
