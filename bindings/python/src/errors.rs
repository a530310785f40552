//! What went wrong, as the exceptions of PEP 249 that `remora._errors` defines.

use pyo3::{
    Bound, PyErr, PyResult, import_exception,
    types::{PyModule, PyModuleMethods},
};
use remora::Error;
use remora_mysql::ErrorCode;

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
const INTEGRITY: &[ErrorCode] = &[
    ErrorCode::ColumnCannotBeNull,
    ErrorCode::DuplicateKey,
    ErrorCode::NoReferencedRowOld,
    ErrorCode::RowIsReferencedOld,
    ErrorCode::NoDefault,
    ErrorCode::RowIsReferenced,
    ErrorCode::NoReferencedRow,
    ErrorCode::ForeignDuplicateKey,
    ErrorCode::DuplicateKeyNamed,
    ErrorCode::CheckViolated,
];
/// Those of values that do not fit: beyond a range, cut, wrong, too long, divided by zero.
const DATA: &[ErrorCode] = &[
    ErrorCode::OutOfRange,
    ErrorCode::DataTruncated,
    ErrorCode::TruncatedValue,
    ErrorCode::DivisionByZero,
    ErrorCode::WrongValueForColumn,
    ErrorCode::IllegalValueForType,
    ErrorCode::DataTooLong,
    ErrorCode::NumberOutOfRange,
    ErrorCode::InvalidJson,
];
/// Those of what is not there yet.
const NOT_SUPPORTED: &[ErrorCode] = &[ErrorCode::NotSupported, ErrorCode::NotPrepared];
/// Another transaction was faster, or holds what is asked for.
const CONFLICT: &[ErrorCode] = &[ErrorCode::LockWaitTimeout, ErrorCode::Deadlock];

/// The numbers for sessions of a server, whose errors have nothing else.
pub(crate) fn add_numbers(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let all = [
        ("INTEGRITY", INTEGRITY),
        ("DATA", DATA),
        ("NOT_SUPPORTED", NOT_SUPPORTED),
        ("CONFLICT", CONFLICT),
    ];
    for (name, codes) in all {
        let numbers: Vec<u16> = codes.iter().map(|code| code.number()).collect();
        module.add(name, numbers)?;
    }
    Ok(())
}

/// An error of the library.
pub(crate) fn raised(error: Error) -> PyErr {
    let number = error.mysql_code();
    let told = (error.to_string(), number, error.is_retryable());
    let code = number.and_then(ErrorCode::from_number);
    let is_of = |codes: &[ErrorCode]| code.is_some_and(|code| codes.contains(&code));
    match error {
        Error::Request(_) if is_of(INTEGRITY) => IntegrityError::new_err(told),
        Error::Request(_) if is_of(DATA) => DataError::new_err(told),
        Error::Request(_) if is_of(NOT_SUPPORTED) => NotSupportedError::new_err(told),
        Error::Request(_) | Error::NotFound(_) => ProgrammingError::new_err(told),
        // Of a table or a database; what has no number is a row or a document.
        Error::Exists(_) if number.is_some() && code != Some(ErrorCode::DuplicateKey) => {
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
