//! Which tables are selected: names and patterns.

use crate::mysql::settings::MysqlSettings;

/// Databases of the server itself.
const SYSTEM: [&str; 5] = ["information_schema", "mysql", "performance_schema", "sys", "ndbinfo"];

/// The selected tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Patterns of database and table; empty means all tables of `database`.
    patterns: Vec<(String, String)>,
    database: Option<String>,
}

impl Selection {
    /// The selection of the settings: `database.table`, or `table` in the default database, with `*` and `?`. Without
    /// patterns: all tables of the default database, or, without one, of all databases but the server's own.
    pub fn of(settings: &MysqlSettings) -> Self {
        Self::new(settings.database.as_deref(), &settings.tables)
    }

    /// A selection from its parts. Without a default database, an unqualified name applies to every
    /// database.
    pub fn new(database: Option<&str>, tables: &[String]) -> Self {
        let split = |pattern: &String| match pattern.split_once('.') {
            Some((database, table)) => (database.to_owned(), table.to_owned()),
            None => (database.unwrap_or("*").to_owned(), pattern.clone()),
        };
        let patterns = tables.iter().map(split).collect();
        Self { patterns, database: database.map(str::to_owned) }
    }

    /// The names and patterns; none if all tables of a database are selected.
    pub fn patterns(&self) -> impl Iterator<Item = Pattern<'_>> {
        self.patterns.iter().map(|(database, table)| Pattern { database, table })
    }

    /// Whether the table is selected. Names are compared case-sensitively.
    pub fn matches(&self, database: &str, table: &str) -> bool {
        if self.patterns.is_empty() {
            return match &self.database {
                Some(wanted) => wanted == database,
                None => !is_system(database),
            };
        }
        self.patterns().any(|pattern| pattern.fits(database, table))
    }
}

/// One name or pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'s> {
    /// The pattern of databases.
    pub database: &'s str,
    /// The pattern of tables.
    pub table: &'s str,
}

impl Pattern<'_> {
    /// Whether the table matches. A pattern of databases does not match the server's own.
    pub fn fits(self, database: &str, table: &str) -> bool {
        let open = self.database.contains(['*', '?']);
        (!open || !is_system(database))
            && wildcard(self.database.as_bytes(), database.as_bytes())
            && wildcard(self.table.as_bytes(), table.as_bytes())
    }
}

fn is_system(database: &str) -> bool {
    SYSTEM.iter().any(|name| name.eq_ignore_ascii_case(database))
}

/// Whether the name matches the pattern, in which `*` is any sequence and `?` is one character.
fn wildcard(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                n += character_len(name, n);
            }
            Some(byte) if name.get(n) == Some(byte) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// The length of the UTF-8 character at this offset.
fn character_len(name: &[u8], start: usize) -> usize {
    let behind = name.get(start + 1..).unwrap_or_default();
    1 + behind.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(database: Option<&str>, tables: &[&str], name: &str) -> bool {
        let tables: Vec<_> = tables.iter().map(|&table| table.to_owned()).collect();
        let (wanted_database, table) = name.split_once('.').unwrap();
        Selection::new(database, &tables).matches(wanted_database, table)
    }

    #[test]
    fn names_and_patterns_select() {
        assert!(selects(None, &[], "shop.a"));
        assert!(!selects(None, &[], "mysql.user"));
        assert!(selects(Some("shop"), &[], "shop.a"));
        assert!(!selects(Some("shop"), &[], "other.a"));
        assert!(selects(Some("shop"), &["a*"], "shop.abc"));
        assert!(!selects(Some("shop"), &["a*"], "other.abc"));
        assert!(selects(Some("shop"), &["other.b?"], "other.bü"));
        assert!(!selects(Some("shop"), &["other.b?"], "other.b"));
        assert!(!selects(None, &["*.user"], "mysql.user"));
        assert!(selects(None, &["mysql.user"], "mysql.user"));
        assert!(selects(None, &["*x*y*"], "x.axbyc"));
        assert!(!selects(None, &["*.*x*y"], "x.axbyc"));
        assert!(!selects(None, &["A"], "x.a"));
    }
}
