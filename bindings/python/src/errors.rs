//! What went wrong, as the exceptions of PEP 249 that `remora._errors` defines.

use pyo3::{PyErr, import_exception};
use remora::Error;

import_exception!(remora._errors, ConflictError);
import_exception!(remora._errors, DataError);
import_exception!(remora._errors, IntegrityError);
import_exception!(remora._errors, InterfaceError);
import_exception!(remora._errors, InternalError);
import_exception!(remora._errors, NotSupportedError);
import_exception!(remora._errors, OperationalError);
import_exception!(remora._errors, ProgrammingError);

/// MySQL's numbers of what a key, a reference or a condition refuses: a column that must not be NULL, a duplicate, a
/// column without a default, foreign keys, CHECK.
const INTEGRITY: [u16; 10] = [1048, 1062, 1216, 1217, 1364, 1451, 1452, 1557, 1586, 3819];
/// Those of values that do not fit: beyond a range, cut, wrong, too long, divided by zero.
const DATA: [u16; 9] = [1264, 1265, 1292, 1365, 1366, 1367, 1406, 1690, 3140];
/// Those of what is not there yet.
const NOT_SUPPORTED: [u16; 2] = [1235, 1295];

/// An error of the library.
pub(crate) fn raised(error: Error) -> PyErr {
    let code = error.mysql_code();
    let told = (error.to_string(), code, error.is_retryable());
    let is_of = |codes: &[u16]| code.is_some_and(|code| codes.contains(&code));
    match error {
        Error::Request(_) if is_of(&INTEGRITY) => IntegrityError::new_err(told),
        Error::Request(_) if is_of(&DATA) => DataError::new_err(told),
        Error::Request(_) if is_of(&NOT_SUPPORTED) => NotSupportedError::new_err(told),
        Error::Request(_) | Error::NotFound(_) => ProgrammingError::new_err(told),
        // Of a table or a database; what has no number is a row or a document.
        Error::Exists(_) if code.is_some_and(|code| code != 1062) => {
            ProgrammingError::new_err(told)
        }
        Error::Exists(_) => IntegrityError::new_err(told),
        Error::Conflict(_) | Error::Changed(_) => ConflictError::new_err(told),
        Error::Corrupt(_) => InternalError::new_err(told),
        Error::Closed => InterfaceError::new_err(told),
        _ => OperationalError::new_err(told),
    }
}

/// The call is wrong.
pub(crate) fn programming(message: impl Into<String>) -> PyErr {
    ProgrammingError::new_err(message.into())
}

/// A value can be none of the database's.
pub(crate) fn data(message: impl Into<String>) -> PyErr {
    DataError::new_err(message.into())
}

/// What was closed is used.
pub(crate) fn closed() -> PyErr {
    InterfaceError::new_err("the connection is closed")
}
