//! Valid names of new collections.

/// The most characters of a collection's name, as of SQL's tables.
pub(crate) const MAX_COLLECTION_NAME_CHARS: usize = 64;

/// Whether this is a valid name for a new collection. A collection is a table in the default database, so its name must
/// not look like a path or a qualified name.
pub(crate) fn is_collection_name(name: &str) -> bool {
    let is_plain = |letter: char| !letter.is_control() && !r#"/\.#`"#.contains(letter);
    name.chars().count() <= MAX_COLLECTION_NAME_CHARS
        && name.chars().all(is_plain)
        && name.trim() == name
        && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_names_cannot_be_paths() {
        for good in ["Feeds", "my feeds", "a-b_c", "日本"] {
            assert!(is_collection_name(good), "{good}");
        }
        for bad in [
            "",
            "../x",
            "a/b",
            "a\\b",
            ".",
            "shop.a",
            "#a",
            "a\n",
            " a",
            "a ",
            "`",
            &"x".repeat(65),
        ] {
            assert!(!is_collection_name(bad), "{bad}");
        }
    }
}
