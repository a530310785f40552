//! What belongs to one process. A forked child has copies of everything but the threads that make it work: it is told
//! so, and neither writes nor closes nor removes what is its parent's.

use pyo3::PyResult;

use crate::errors::InterfaceError;

/// A value of the process that made it. In another it is not given, and forgotten instead of dropped.
pub(crate) struct OfProcess<T> {
    value: Option<T>,
    process: u32,
}

impl<T> OfProcess<T> {
    pub fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// The value; `None` if it was taken.
    ///
    /// # Errors
    /// `InterfaceError` in a forked child.
    pub fn get(&self) -> PyResult<Option<&T>> {
        check(self.process)?;
        Ok(self.value.as_ref())
    }

    /// The value, to be changed; `None` if it was taken.
    ///
    /// # Errors
    /// `InterfaceError` in a forked child.
    pub fn get_mut(&mut self) -> PyResult<Option<&mut T>> {
        check(self.process)?;
        Ok(self.value.as_mut())
    }

    /// Takes the value out, to be dropped.
    ///
    /// # Errors
    /// `InterfaceError` in a forked child.
    pub fn take(&mut self) -> PyResult<Option<T>> {
        check(self.process)?;
        Ok(self.value.take())
    }
}

/// Refuses a process that is not this one.
///
/// # Errors
/// `InterfaceError`.
pub(crate) fn check(process: u32) -> PyResult<()> {
    if process == std::process::id() {
        return Ok(());
    }
    Err(InterfaceError::new_err(
        "this process was forked from the one that has the database open, which alone may use it: let one process \
         ask for the others, or let each connect to `remora serve` with a MySQL driver",
    ))
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
