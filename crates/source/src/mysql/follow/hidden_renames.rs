//! Renames of temporary tables, which MariaDB logs as those of lasting ones: by the names of tables that
//! they hide, and in sessions that log rows without a word of how they were made.
//!
//! ```text
//! RENAME TABLE a TO x                    temporary if there is an `a` still
//! RENAME TABLE a TO x, b TO a            there is an `a` anyhow: what tells is whether there is an `x`, and
//!                                        whether `a` is what `b` was
//! RENAME TABLE a TO x, b TO a, x TO b    if `a` and `b` are defined alike nothing tells
//! ```
//! Renames that share a name are all of temporary tables or all of lasting ones, else the server refuses
//! them: a name is free only if what had it was renamed before.

use std::collections::BTreeMap;

use super::{
    applier::Applier,
    doubt::{Absence, Here},
    statement::TableName,
};
use crate::{Result, mysql::gtid::Flavor};

/// From one name to another.
pub(super) type Rename = (TableName, TableName);

/// What the renames of a statement are.
#[derive(Default)]
pub(super) struct Told {
    /// Those of tables that last, in their order.
    pub lasting: Vec<Rename>,
    /// Names of those that may be either.
    pub undecided: Vec<TableName>,
}

/// What the source says of renames that share names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Lasting,
    Temporary,
    Undecided,
}

impl Applier {
    /// The renames that are of lasting tables.
    pub(super) fn without_temporary(&mut self, renames: Vec<Rename>) -> Result<Told> {
        if self.source.server.flavor != Flavor::MariaDb {
            return Ok(Told { lasting: renames, ..Told::default() });
        }
        let groups = linked(&renames);
        let mut verdicts = BTreeMap::new();
        for &group in &groups {
            if verdicts.contains_key(&group) {
                continue;
            }
            let of_group = renames.iter().zip(&groups).filter(|(_, of)| **of == group);
            let of_group: Vec<Rename> = of_group.map(|(rename, _)| rename.clone()).collect();
            verdicts.insert(group, self.verdict(&of_group)?);
        }
        let mut told = Told::default();
        for ((from, to), group) in renames.into_iter().zip(&groups) {
            let verdict = verdicts.get(group).copied().unwrap_or(Verdict::Undecided);
            if self.temporary.has(&from) || verdict == Verdict::Temporary {
                self.temporary.add(to.clone(), &self.shared);
            }
            match verdict {
                Verdict::Temporary => continue,
                Verdict::Lasting => {}
                Verdict::Undecided => told.undecided.extend([from.clone(), to.clone()]),
            }
            told.lasting.push((from, to));
        }
        self.with_next.extend(self.temporary.take_unstored(&self.shared.settings.name));
        Ok(told)
    }

    fn verdict(&mut self, renames: &[Rename]) -> Result<Verdict> {
        if !renames.iter().any(|(from, _)| self.tables.contains_key(from)) {
            return Ok(Verdict::Lasting);
        }
        if let [(from, _)] = renames {
            return Ok(match self.is_still_there(from)? {
                true => Verdict::Temporary,
                false => Verdict::Lasting,
            });
        }
        for (to, from) in origins(renames) {
            let Some(expected) = self.tables.get(&from).map(|one| one.source.clone()) else {
                continue;
            };
            let before = self.tables.get(&to).map(|one| one.source.clone());
            match (self.definition_here(&to, None)?, before) {
                (Here::Is(Err(Absence::Gone)), _) => return Ok(Verdict::Temporary),
                (Here::Is(Ok(_)), None) => return Ok(Verdict::Lasting),
                (Here::Is(Ok(read)), Some(before)) => {
                    match (read.reads_as(&expected), read.reads_as(&before)) {
                        (true, false) => return Ok(Verdict::Lasting),
                        (false, true) => return Ok(Verdict::Temporary),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(Verdict::Undecided)
    }
}

/// A number for each rename, the same for those that share names.
fn linked(renames: &[Rename]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..renames.len()).collect();
    let mut first: BTreeMap<&TableName, usize> = BTreeMap::new();
    for (place, (from, to)) in renames.iter().enumerate() {
        for name in [from, to] {
            let known = *first.entry(name).or_insert(place);
            let (Some(&new), Some(&old)) = (groups.get(known), groups.get(place)) else { continue };
            if new != old {
                groups.iter_mut().filter(|group| **group == old).for_each(|group| *group = new);
            }
        }
    }
    groups
}

/// Each name that something has in the end, with the name that this had at first.
fn origins(renames: &[Rename]) -> BTreeMap<TableName, TableName> {
    let mut origins: BTreeMap<TableName, TableName> = BTreeMap::new();
    for (from, to) in renames {
        let origin = origins.remove(from).unwrap_or_else(|| from.clone());
        origins.insert(to.clone(), origin);
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> TableName {
        TableName { database: "d".to_owned(), table: table.to_owned() }
    }

    fn renames(text: &str) -> Vec<Rename> {
        let pair = |pair: &str| pair.split_once('>').map(|(from, to)| (name(from), name(to)));
        text.split(' ').filter_map(pair).collect()
    }

    #[test]
    fn renames_that_share_a_name_belong_together() {
        assert_eq!(linked(&renames("a>x b>a c>d x>b e>c")), [0, 0, 2, 0, 2]);
        assert_eq!(linked(&renames("a>b c>d b>c")), [0, 0, 0]);
    }

    #[test]
    fn names_are_followed_to_their_origin() {
        let found = |text: &str| -> Vec<(String, String)> {
            let origins = origins(&renames(text)).into_iter();
            origins.map(|(to, from)| (to.table, from.table)).collect()
        };
        let pairs = |expected: &[(&str, &str)]| -> Vec<(String, String)> {
            expected.iter().map(|(to, from)| ((*to).to_owned(), (*from).to_owned())).collect()
        };
        assert_eq!(found("a>x b>a"), pairs(&[("a", "b"), ("x", "a")]));
        assert_eq!(found("a>x b>a x>b"), pairs(&[("a", "b"), ("b", "a")]));
    }
}
