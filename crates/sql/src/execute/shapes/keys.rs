//! Primary keys in a condition: one key, a list, an OR of equalities, a UNION of single rows. All become a sorted list
//! of keys to look up, of any length.

use std::cmp::Ordering;

use remora_engine::{ColumnType, KeyValues, compare};
use smallvec::SmallVec;

use super::{
    constant::{Comparable, Constant, Fitted},
    parameterize::Constants,
    shape::{ColumnName, Comparison, JsonKeys, LiteralGroup, Repeated, ShapeCondition},
    table::ShapeTable,
};

/// A condition on the primary key, with places for its literals.
#[derive(Debug)]
pub(super) struct KeyTest {
    atoms: Vec<Atom>,
    comparables: SmallVec<[Comparable; 2]>,
    /// Whether it names exactly one key.
    pub is_single: bool,
    /// Whether a single key is looked up by its bytes although its collation has other spellings of it. A row found so
    /// is the only match; if none is found, another spelling may still exist.
    pub by_bytes: bool,
    /// The JSON array that holds the keys, of a join with JSON_TABLE.
    json: Option<JsonArray>,
}

/// A JSON array of keys in a literal.
#[derive(Clone, Copy, Debug)]
struct JsonArray {
    array: LiteralGroup,
    members: LiteralGroup,
    member: LiteralGroup,
    range: (i128, i128),
}

/// Keys of one form. Each key part is a literal, or a member of the tuples of one list.
#[derive(Debug)]
struct Atom {
    parts: SmallVec<[KeySource; 2]>,
    /// The list, and the number of members of its tuples.
    list: Option<(LiteralGroup, usize)>,
    again: Repeated,
}

/// The source of a key part's value.
#[derive(Clone, Copy, Debug)]
enum KeySource {
    One(LiteralGroup),
    Member(usize),
}

/// The key part that an equality fixes, its value, and the list if it has one.
type KeyEquality = (usize, KeySource, Option<(LiteralGroup, usize)>);

const ONCE: Repeated = Repeated { times: 1, groups: 0 };

impl KeyTest {
    /// The keys of a condition, if it does nothing but name keys.
    pub fn new(condition: &ShapeCondition, table: &ShapeTable) -> Option<Self> {
        let schema = table.schema();
        let mut by_bytes = false;
        let comparable = |&position: &usize| {
            let kind = schema.columns.get(position)?.kind;
            let spec = table.sql.columns.get(position)?;
            let spelled =
                kind == ColumnType::Text && spec.kind.is_text() && !spec.kind.has_labels();
            Comparable::of(kind, spec).or_else(|| {
                by_bytes = true;
                (spelled && table.is_replicated).then_some(Comparable::Text)
            })
        };
        let comparables = schema.primary_key.iter().map(comparable).collect::<Option<_>>()?;
        let mut atoms = Vec::new();
        atoms_of(condition, ONCE, table, &mut atoms)?;
        let single = |atom: &Atom| atom.list.is_none() && atom.again.times == 1;
        let is_single = atoms.len() == 1 && atoms.iter().all(single);
        (is_single || !by_bytes).then_some(Self {
            atoms,
            comparables,
            is_single,
            by_bytes,
            json: None,
        })
    }

    /// The keys of a join with JSON_TABLE.
    pub fn joined(keys: &JsonKeys, table: &ShapeTable) -> Option<Self> {
        let [key] = table.schema().primary_key.as_slice() else { return None };
        if table.position(&keys.key)? != *key {
            return None;
        }
        let kind = table.schema().columns.get(*key)?.kind;
        let comparable = Comparable::of(kind, table.sql.columns.get(*key)?)?;
        let JsonKeys { array, members, member, range, .. } = *keys;
        let json = Some(JsonArray { array, members, member, range });
        let comparables = SmallVec::from_iter([comparable]);
        Some(Self { atoms: Vec::new(), comparables, is_single: false, by_bytes: false, json })
    }

    /// Whether all parts of the key are integers.
    pub fn is_integers(&self) -> bool {
        self.comparables.iter().all(|part| matches!(part, Comparable::Integer { .. }))
    }

    /// The single key; `Some(None)` if no row can match, `None` if a literal needs a conversion.
    pub fn single(&self, constants: &Constants<'_>) -> Option<Option<KeyValues>> {
        let atom = self.atoms.first()?;
        self.key(atom, constants, 0, 0)
    }

    /// Appends the keys of the statement's `branches`, in their order; `None` if a literal needs a conversion.
    pub fn fill(
        &self,
        constants: &Constants<'_>,
        branches: Repeated,
        keys: &mut Vec<KeyValues>,
    ) -> Option<()> {
        if let Some(json) = &self.json {
            return json.fill(*self.comparables.first()?, constants, keys);
        }
        for branch in 0..branches.times {
            for atom in &self.atoms {
                for time in 0..atom.again.times {
                    let offset = branch * branches.groups + time * atom.again.groups;
                    let rows = match atom.list {
                        Some((list, arity)) => constants.group(list + offset).len() / arity.max(1),
                        None => 1,
                    };
                    for row in 0..rows {
                        keys.extend(self.key(atom, constants, offset, row)?);
                    }
                }
            }
        }
        Some(())
    }

    fn key(
        &self,
        atom: &Atom,
        constants: &Constants<'_>,
        offset: usize,
        row: usize,
    ) -> Option<Option<KeyValues>> {
        let mut key = KeyValues::new();
        let mut exists = true;
        for (part, comparable) in atom.parts.iter().zip(&self.comparables) {
            let constant = match (*part, atom.list) {
                (KeySource::One(group), _) => constants.one(group + offset),
                (KeySource::Member(member), Some((list, arity))) => {
                    let literals = constants.group(list + offset);
                    constants.constant(literals.get(row * arity + member)?)
                }
                (KeySource::Member(_), None) => return None,
            };
            match comparable.fit(&constant)? {
                Fitted::Value(value) => key.push(value),
                _ => exists = false,
            }
        }
        Some(exists.then_some(key))
    }
}

impl JsonArray {
    fn fill(
        &self,
        comparable: Comparable,
        constants: &Constants<'_>,
        keys: &mut Vec<KeyValues>,
    ) -> Option<()> {
        let is_text = |group, text: &str| constants.one(group) == Constant::Text(text.into());
        if !is_text(self.members, "$[*]") || !is_text(self.member, "$") {
            return None;
        }
        let Constant::Text(array) = constants.one(self.array) else { return None };
        let inner = array.trim_ascii().strip_prefix('[')?.strip_suffix(']')?;
        if inner.trim_ascii().is_empty() {
            return Some(());
        }
        for member in inner.split(',') {
            let digits = member.trim_ascii();
            let canonical = digits.strip_prefix('-').unwrap_or(digits);
            let leading_zero = canonical.len() > 1 && canonical.starts_with('0');
            if leading_zero || !canonical.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let number: i128 = digits.parse().ok()?;
            // Numbers outside the column's type become NULL, which matches nothing.
            if number < self.range.0 || number > self.range.1 {
                continue;
            }
            if let Fitted::Value(value) = comparable.fit(&Constant::Integer(number))? {
                keys.push(KeyValues::from_iter([value]));
            }
        }
        Some(())
    }
}

fn atoms_of(
    condition: &ShapeCondition,
    again: Repeated,
    table: &ShapeTable,
    atoms: &mut Vec<Atom>,
) -> Option<()> {
    match condition {
        ShapeCondition::Or(parts) if again == ONCE => {
            parts.iter().try_for_each(|part| atoms_of(part, again, table, atoms))
        }
        ShapeCondition::Again(part, again_part) if again == ONCE => {
            atoms_of(part, *again_part, table, atoms)
        }
        ShapeCondition::Or(_) | ShapeCondition::Again(..) => None,
        other => {
            atoms.push(atom(other, again, table)?);
            Some(())
        }
    }
}

fn atom(condition: &ShapeCondition, again: Repeated, table: &ShapeTable) -> Option<Atom> {
    let mut said: SmallVec<[KeyEquality; 4]> = SmallVec::new();
    match condition {
        ShapeCondition::And(parts) => {
            parts.iter().try_for_each(|part| fix_part(part, table, &mut said))?;
        }
        part => fix_part(part, table, &mut said)?,
    }
    let key = &table.schema().primary_key;
    let parts = key.iter().map(|position| {
        let mut of_part = said.iter().filter(|(column, ..)| column == position);
        let part = of_part.next()?.1;
        of_part.next().is_none().then_some(part)
    });
    let parts = parts.collect::<Option<_>>()?;
    let mut lists = said.iter().filter_map(|(_, _, list)| *list);
    let list = lists.next();
    let one_list = lists.all(|other| Some(other) == list);
    (said.len() == key.len() && one_list).then_some(Atom { parts, list, again })
}

fn fix_part(
    condition: &ShapeCondition,
    table: &ShapeTable,
    said: &mut SmallVec<[KeyEquality; 4]>,
) -> Option<()> {
    let position = |column: &ColumnName| table.position(column);
    match condition {
        ShapeCondition::Compare(column, Comparison::Equal, group) => {
            said.push((position(column)?, KeySource::One(*group), None));
        }
        ShapeCondition::In(columns, list) => {
            let arity = columns.len();
            for (member, column) in columns.iter().enumerate() {
                said.push((position(column)?, KeySource::Member(member), Some((*list, arity))));
            }
        }
        ShapeCondition::And(parts) => {
            parts.iter().try_for_each(|part| fix_part_once(part, table, said))?;
        }
        _ => return None,
    }
    Some(())
}

fn fix_part_once(
    condition: &ShapeCondition,
    table: &ShapeTable,
    said: &mut SmallVec<[KeyEquality; 4]>,
) -> Option<()> {
    match condition {
        ShapeCondition::And(_) => None,
        other => fix_part(other, table, said),
    }
}

/// Sorts keys ascending and removes duplicates.
pub(super) fn sort(keys: &mut Vec<KeyValues>) {
    if !keys.is_sorted_by(|a, b| order(a, b).is_lt()) {
        keys.sort_unstable_by(order);
        keys.dedup();
    }
}

/// Removes duplicates and keeps the order of first occurrences.
pub(super) fn distinct(keys: &mut Vec<KeyValues>) {
    let mut sorted: Vec<(u32, KeyValues)> = (0..).zip(keys.drain(..)).collect();
    sorted.sort_unstable_by(|a, b| order(&a.1, &b.1).then(a.0.cmp(&b.0)));
    sorted.dedup_by(|later, first| later.1 == first.1);
    sorted.sort_unstable_by_key(|(place, _)| *place);
    keys.extend(sorted.into_iter().map(|(_, key)| key));
}

fn order(a: &KeyValues, b: &KeyValues) -> Ordering {
    let parts = a.iter().zip(b.iter()).map(|(a, b)| compare(a, b));
    parts.fold(Ordering::Equal, Ordering::then)
}
