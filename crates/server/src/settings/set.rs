//! Overrides defaults with the values of a file.

/// Overrides a setting if the file has a value.
pub(super) fn set<T>(setting: &mut T, typed: Option<T>) {
    if let Some(value) = typed {
        *setting = value;
    }
}
