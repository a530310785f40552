//! Renames of temporary tables, which MariaDB logs like renames of base tables: by names of tables that they hide, and,
//! in sessions that log rows, without the statement that created them.
//!
//! ```text
//! RENAME TABLE a TO x                    temporary if there is an `a` still, or was an `x` before
//! RENAME TABLE a TO x, b TO a            each may be the one or the other; what is at the source under the
//!                                        three names tells which
//! RENAME TABLE a TO x, b TO a, x TO b    if `a` and `b` are defined alike nothing tells
//! ```
//! So each interpretation of a statement's renames is tried: its result for the followed tables is compared with the
//! source's current tables. If several interpretations remain, the tables are copied.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    applier::Applier,
    uncertainty::{Absence, Answer, DefinitionHere},
};
use crate::{
    Result,
    mysql::{gtid::Flavor, table_name::TableName},
};

/// The old and the new name.
pub(super) type Rename = (TableName, TableName);

/// The interpretation of a statement's renames.
#[derive(Default)]
pub(super) struct ClassifiedRenames {
    /// The renames of base tables, in order.
    pub of_base_tables: Vec<Rename>,
    /// Names that may belong to either kind.
    pub undecided: Vec<TableName>,
}

/// The most connected renames that are examined. Each one doubles the number of interpretations.
const MAX_CONNECTED: usize = 8;

/// For each rename, whether it is of a base table; `None` if that cannot be determined.
type Classification = Option<Vec<bool>>;

impl Applier {
    /// The renames of base tables. MySQL logs none of temporary tables, except those of an ALTER TABLE for which other
    /// signs say `maybe_temporary`.
    pub(super) fn without_temporary(
        &mut self,
        renames: Vec<Rename>,
        maybe_temporary: bool,
    ) -> Result<ClassifiedRenames> {
        if self.source.server.flavor != Flavor::MariaDb && !maybe_temporary {
            return Ok(ClassifiedRenames {
                of_base_tables: renames,
                ..ClassifiedRenames::default()
            });
        }
        let groups = connected_groups(&renames);
        let mut classifications = BTreeMap::new();
        for &group in &groups {
            if classifications.contains_key(&group) {
                continue;
            }
            let of_group = renames.iter().zip(&groups).filter(|(_, of)| **of == group);
            let of_group: Vec<Rename> = of_group.map(|(rename, _)| rename.clone()).collect();
            classifications.insert(group, self.classify(&of_group)?);
        }
        let mut classified = ClassifiedRenames::default();
        for ((from, to), group) in renames.into_iter().zip(&groups) {
            let classification = classifications.get_mut(group).and_then(Option::as_mut);
            let is_of_base_table =
                classification.map(|of_base_tables| of_base_tables.pop().unwrap_or(true));
            if self.temporary.has(&from) || is_of_base_table == Some(false) {
                self.temporary.add(to.clone(), &self.shared);
            }
            match is_of_base_table {
                Some(false) => continue,
                Some(true) => {}
                None => classified.undecided.extend([from.clone(), to.clone()]),
            }
            classified.of_base_tables.push((from, to));
        }
        Ok(classified)
    }

    /// Determines which of several connected renames are of base tables. The last one is first.
    fn classify(&mut self, renames: &[Rename]) -> Result<Classification> {
        let is_followed =
            |(from, to): &Rename| self.tables.contains_key(from) || self.tables.contains_key(to);
        if !renames.iter().any(is_followed) {
            return Ok(Some(vec![true; renames.len()]));
        }
        if let [(from, _)] = renames
            && let Some(table_exists) = self.still_exists(from)?
        {
            return Ok(Some(vec![!table_exists]));
        }
        if renames.len() > MAX_CONNECTED {
            return Ok(None);
        }
        let names: BTreeSet<&TableName> =
            renames.iter().flat_map(|(from, to)| [from, to]).collect();
        let mut there = Vec::new();
        for name in &names {
            if self.selects(name)
                && let DefinitionHere::Certain(answer) = self.definition_here(name, None)?
            {
                there.push(((*name).clone(), answer));
            }
        }
        let before = names.into_iter().filter_map(|name| self.origin(name));
        let before: NameOrigins = before.collect();
        let mut found: Option<(NameOrigins, Vec<bool>)> = None;
        for of_base_tables in interpretations(renames.len()) {
            let Some(names_after) = names_after(renames, &of_base_tables, &before) else {
                continue;
            };
            if !there.iter().all(|(name, answer)| self.is_consistent(names_after.get(name), answer))
            {
                continue;
            }
            match &found {
                None => found = Some((names_after, of_base_tables)),
                Some((known, _)) if *known == names_after => {}
                Some(_) => return Ok(None),
            }
        }
        Ok(found.map(|(_, of_base_tables)| of_base_tables.into_iter().rev().collect()))
    }

    /// What is known to have this name at this position, with the name.
    fn origin(&self, name: &TableName) -> Option<(TableName, Origin)> {
        let known = self.tables.get(name)?;
        // An uncertain table may exist at the source now, but not at this position.
        let is_certain = known.uncertainty.is_none() && known.stopped.is_none();
        let origin = if is_certain { Origin::Followed } else { Origin::MaybeFollowed };
        Some((name.clone(), origin(name.clone())))
    }

    /// Whether the source's answer about a name is consistent with what should have the name.
    fn is_consistent(&self, origin: Option<&Origin>, answer: &Answer) -> bool {
        match (origin, answer) {
            (Some(Origin::Followed(name)), Ok(read)) => self.tables.get(name).is_none_or(|known| {
                known.uncertainty.is_some()
                    || known.source.columns.is_empty()
                    || known.source.reads_as(read)
            }),
            (Some(Origin::Followed(_)), Err(absence)) => *absence != Absence::Gone,
            (Some(Origin::MaybeFollowed(_) | Origin::Unknown), _) => true,
            (None, answer) => answer.is_err(),
        }
    }
}

/// What has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// The table that is followed under this name.
    Followed(TableName),
    /// The table that is known under this name, if it exists.
    MaybeFollowed(TableName),
    /// A view, or a table that is not followed.
    Unknown,
}

/// What each name belongs to in the end.
type NameOrigins = BTreeMap<TableName, Origin>;

/// All interpretations of this many renames, each of a base or of a temporary table. The first has base tables only.
fn interpretations(count: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1_usize << count).map(move |interpretation| {
        (0..count).map(|place| interpretation >> place & 1 == 0).collect()
    })
}

/// The result for the followed tables; `None` if the server would have refused the statement.
fn names_after(
    renames: &[Rename],
    of_base_tables: &[bool],
    before: &NameOrigins,
) -> Option<NameOrigins> {
    let mut names = before.clone();
    for ((from, to), _) in
        renames.iter().zip(of_base_tables).filter(|(_, of_base_tables)| **of_base_tables)
    {
        let origin = match names.remove(from) {
            Some(Origin::Followed(name) | Origin::MaybeFollowed(name)) => Origin::Followed(name),
            Some(Origin::Unknown) | None => Origin::Unknown,
        };
        if !matches!(names.insert(to.clone(), origin), None | Some(Origin::MaybeFollowed(_))) {
            return None;
        }
    }
    Some(names)
}

/// A group number for each rename, equal for renames that share names.
fn connected_groups(renames: &[Rename]) -> Vec<usize> {
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
    fn renames_that_share_a_name_are_grouped() {
        assert_eq!(connected_groups(&renames("a>x b>a c>d x>b e>c")), [0, 0, 2, 0, 2]);
        assert_eq!(connected_groups(&renames("a>b c>d b>c")), [1, 1, 1]);
    }

    #[test]
    fn interpretations_of_renames_give_names() {
        let followed = ["a", "b"].map(|table| (name(table), Origin::Followed(name(table))));
        let mut before = NameOrigins::from(followed);
        before.insert(name("c"), Origin::MaybeFollowed(name("c")));
        let made = |text: &str, of_base_tables: &[bool]| -> Option<String> {
            let names_after = names_after(&renames(text), of_base_tables, &before)?;
            let classified = names_after.into_iter().map(|(name, origin)| match origin {
                Origin::Followed(origin) => format!("{}={}", name.table, origin.table),
                Origin::MaybeFollowed(origin) => format!("{}={}?", name.table, origin.table),
                Origin::Unknown => format!("{}=?", name.table),
            });
            Some(classified.collect::<Vec<_>>().join(" "))
        };
        let chain = "a>x b>a";
        assert_eq!(made(chain, &[true, true]).as_deref(), Some("a=b c=c? x=a"));
        assert_eq!(made(chain, &[true, false]).as_deref(), Some("b=b c=c? x=a"));
        assert_eq!(made(chain, &[false, true]), None);
        assert_eq!(made(chain, &[false, false]).as_deref(), Some("a=a b=b c=c?"));
        assert_eq!(made("v>x a>v x>a", &[true; 3]).as_deref(), Some("a=? b=b c=c? v=a"));
        assert_eq!(made("a>c", &[true]).as_deref(), Some("b=b c=a"));
        assert_eq!(made("c>x", &[true]).as_deref(), Some("a=a b=b x=c"));
        assert_eq!(made("a>b", &[true]), None);
        assert_eq!(interpretations(2).next(), Some(vec![true, true]));
        assert_eq!(interpretations(3).count(), 8);
    }
}
