//! Translates fjall's errors into the engine's.

use std::io::ErrorKind;

use crate::Error;

/// Kinds of system errors that mean damaged data rather than a failing disk.
const DAMAGE: [ErrorKind; 4] = [
    ErrorKind::NotFound,
    ErrorKind::UnexpectedEof,
    ErrorKind::InvalidData,
    ErrorKind::InvalidInput,
];

/// The engine's error for an error of fjall.
pub(super) fn store_error(error: fjall::Error) -> Error {
    match error {
        // A file is missing or too short, or a reference in it leads nowhere.
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error))
            if DAMAGE.contains(&error.kind()) =>
        {
            Error::Corrupt(format!("the row store: {error}"))
        }
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            Error::Io(format!("the row store: {error}"))
        }
        fjall::Error::Poisoned => {
            Error::Poisoned("an earlier write or flush of the row store failed".to_owned())
        }
        fjall::Error::Locked => Error::Conflict(
            "the row store is in use by another process, or by a read of this one that has not \
                 ended"
                .to_owned(),
        ),
        other => Error::Corrupt(format!("the row store: {other:?}")),
    }
}
