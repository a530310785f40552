//! Settings of a file replace defaults.

/// Replaces a setting by what was typed.
pub(super) fn set<T>(setting: &mut T, typed: Option<T>) {
    if let Some(value) = typed {
        *setting = value;
    }
}
