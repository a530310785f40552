//! `[tables.NAME.words]` without a definition: ranked search of a followed table.

use remora_source::{
    mysql::{schema::Selection, settings::MysqlSettings},
    schema_file::DeclaredWords,
};

use super::Settings;

/// The ranked search declared for tables of a source, by `database.table`.
pub(super) fn of_source(
    words: &[(String, DeclaredWords)],
    source: &MysqlSettings,
) -> Vec<(String, DeclaredWords)> {
    let selection = Selection::of(source);
    let named = |(name, words): &(String, DeclaredWords)| {
        let (database, table) = match name.split_once('.') {
            Some(names) => names,
            None => (source.database.as_deref()?, name.as_str()),
        };
        let is_followed = selection.matches(database, table);
        is_followed.then(|| (format!("{database}.{table}"), words.clone()))
    };
    words.iter().filter_map(named).collect()
}

/// Why the declarations are invalid. A missing source is an error only if one is `needed`: the command line may name
/// one later.
pub(super) fn refusal(settings: &Settings, needed: bool) -> Option<String> {
    if settings.sources.is_empty() && !needed {
        return None;
    }
    let mut followed: Vec<String> = Vec::new();
    for one in &settings.words {
        let named = settings.sources.iter().flat_map(|it| of_source(std::slice::from_ref(one), it));
        let named: Vec<String> = named.map(|(name, _)| name).collect();
        let name = &one.0;
        if named.is_empty() {
            return Some(format!(
                "[tables.\"{name}\"] has words and no columns, and no [mysql] follows a table of this name: \
                 give the table's primary_key and columns, or name it as DATABASE.TABLE among the tables of a [mysql]"
            ));
        }
        let defined = |name: &&String| settings.tables.iter().any(|schema| schema.name == **name);
        if let Some(twice) = named.iter().find(|name| followed.contains(name) || defined(name)) {
            return Some(format!(
                "the words of table {twice} are declared twice: keep one of both"
            ));
        }
        followed.extend(named);
    }
    None
}
