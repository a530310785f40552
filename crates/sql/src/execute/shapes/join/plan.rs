//! A join's shape bound to its tables: the order in which they are read, and the key columns by which each is read.

use super::{Chain as ShapeChain, Items, JoinCondition, JoinPredicate, JoinShape, LiteralOffset};
use crate::{
    Column, Result,
    catalog::Reader,
    execute::shapes::{
        compared_column::ComparedColumn,
        constant::Comparable,
        shape::{ColumnName, Comparison, LiteralGroup},
        table::ShapeTable,
    },
    meaning::types::ExprType,
    state::SessionState,
};

/// A join bound to definitions of its tables.
#[derive(Debug)]
pub(in crate::execute::shapes) struct JoinPlan {
    pub(super) chain: JoinChain,
    pub(super) output: JoinOutput,
    /// The columns of the reply.
    pub(super) columns: Vec<Column>,
}

/// The result made of the joined rows.
#[derive(Debug)]
pub(super) enum JoinOutput {
    /// The number of rows.
    Count,
    /// The number of distinct values of a slot.
    CountDistinct(usize),
    /// These slots as columns.
    Slots(Vec<usize>),
}

/// Tables in reading order. A joined row is the slots of all tables, in that order.
#[derive(Debug)]
pub(super) struct JoinChain {
    pub(super) steps: Vec<JoinStep>,
    /// Chains that are read first, each with the slot whose values are needed.
    pub(super) before: Vec<(JoinChain, usize)>,
}

/// One table. For each joined row of the preceding tables it gives its own rows that satisfy all tests.
#[derive(Debug)]
pub(super) struct JoinStep {
    pub(super) table: ShapeTable,
    /// The positions of the columns that become slots.
    pub(super) fields: Vec<usize>,
    pub(super) tests: Vec<JoinTest>,
    /// For each column of the primary key, the test that gives its value; empty if one is missing.
    pub(super) key: Vec<usize>,
}

/// A condition on a column of the table.
#[derive(Debug)]
pub(super) struct JoinTest {
    /// The tested slot of the table.
    pub(super) field: usize,
    pub(super) operand: ComparedColumn,
    pub(super) comparable: Comparable,
    pub(super) with: Comparand,
}

/// The other side of a test.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comparand {
    Constant(Comparison, LiteralGroup),
    List(LiteralGroup),
    /// The values of a chain that was read first.
    Before(usize),
    /// A slot of the joined row, with the literal added or subtracted.
    Slot(Comparison, usize, Option<LiteralOffset>),
}

/// A column: the number of its table and its position.
type At = (usize, usize);

/// A condition with its columns resolved.
struct BoundPredicate {
    left: At,
    comparison: Option<Comparison>,
    right: RightTable,
}

#[derive(Clone, Copy)]
enum RightTable {
    Constant(LiteralGroup),
    List(LiteralGroup),
    Before(usize),
    Column(At, Option<LiteralOffset>),
}

impl JoinPlan {
    /// Error 1142 if one of the tables may not be read. The session's temporary tables always may.
    pub(in crate::execute::shapes) fn check(&self, session: &SessionState) -> Result<()> {
        let tables = self.chain.tables();
        let mut others = tables.iter().filter(|table| table.temporary.is_none());
        others.try_for_each(|table| table.check(session))
    }

    /// Binds a shape to its tables; `None` if a table cannot be read by its key, or a column has an unsupported type.
    pub(in crate::execute::shapes) fn new(
        shape: &JoinShape,
        session: &SessionState,
        reader: &Reader,
        database: Option<&str>,
    ) -> Option<Self> {
        let wanted: Vec<&ColumnName> = match &shape.items {
            Items::Count(_) => Vec::new(),
            Items::CountDistinct(column, _) => vec![column],
            Items::Columns(columns) => columns.iter().map(|(column, _)| column).collect(),
        };
        let planning = JoinPlanning { database, session, reader };
        let (chain, slots) = planning.chain(&shape.chain, &wanted)?;
        let count = |name: &str| ExprType::int(21).not_null().column_named(name);
        let (output, columns) = match &shape.items {
            Items::Count(name) => (JoinOutput::Count, vec![count(name)]),
            Items::CountDistinct(column, name) => {
                let (table, position) = chain.described(column)?;
                integer(table, position)?;
                (JoinOutput::CountDistinct(*slots.first()?), vec![count(name)])
            }
            Items::Columns(columns) => {
                let described = columns.iter().map(|(column, name)| {
                    let (table, position) = chain.described(column)?;
                    table.described(position, name)
                });
                (JoinOutput::Slots(slots), described.collect::<Option<_>>()?)
            }
        };
        Some(Self { chain, output, columns })
    }

    /// Whether all tables are unchanged.
    pub(in crate::execute::shapes) fn is_current(&self, reader: &Reader) -> bool {
        self.chain.is_current(reader)
    }
}

impl JoinChain {
    /// All tables, also those of the chains that are read first.
    pub(super) fn tables(&self) -> Vec<&ShapeTable> {
        let before = self.before.iter().flat_map(|(chain, _)| chain.tables());
        self.steps.iter().map(|step| &step.table).chain(before).collect()
    }

    fn is_current(&self, reader: &Reader) -> bool {
        self.tables().iter().all(|table| table.is_current(reader))
    }

    /// The table and the position of a column, which is known to belong to one of the tables.
    fn described(&self, column: &ColumnName) -> Option<(&ShapeTable, usize)> {
        let tables = self.steps.iter().map(|step| &step.table);
        tables.filter_map(|table| Some((table, table.position(column)?))).next()
    }
}

struct JoinPlanning<'a> {
    database: Option<&'a str>,
    session: &'a SessionState,
    reader: &'a Reader,
}

impl JoinPlanning<'_> {
    /// The chain, and the slots of the `wanted` columns.
    fn chain(&self, shape: &ShapeChain, wanted: &[&ColumnName]) -> Option<(JoinChain, Vec<usize>)> {
        let tables: Option<Vec<ShapeTable>> = shape
            .tables
            .iter()
            .map(|named| {
                let database = named.database.as_deref().or(self.database);
                let (called, alias) = ((database, named.table.as_str()), named.alias.as_deref());
                ShapeTable::temporary(called, alias, self.session)
                    .or_else(|| ShapeTable::of(called, alias, &self.session.shared, self.reader))
            })
            .collect();
        let tables = tables?;
        let called = |at: usize| tables.get(at).map(ShapeTable::called);
        let twice = (0..tables.len()).any(|a| (0..a).any(|b| called(a) == called(b)));
        if twice || shape.selected.iter().any(|column| find(&tables, column).is_none()) {
            return None;
        }
        let mut before = Vec::new();
        let known: Option<Vec<BoundPredicate>> =
            shape.facts.iter().map(|said| self.known(&tables, said, &mut before)).collect();
        let wanted: Option<Vec<At>> = wanted.iter().map(|column| find(&tables, column)).collect();
        Layout { tables, known: known?, wanted: wanted? }.chain(before)
    }

    fn known(
        &self,
        tables: &[ShapeTable],
        said: &JoinCondition,
        before: &mut Vec<(JoinChain, usize)>,
    ) -> Option<BoundPredicate> {
        let at = |column: &ColumnName| {
            let (table, position) = find(tables.get(said.sees.clone())?, column)?;
            let table = said.sees.start + table;
            integer(tables.get(table)?, position)?;
            Some((table, position))
        };
        Some(match &said.fact {
            JoinPredicate::Constant(column, comparison, group) => BoundPredicate {
                left: at(column)?,
                comparison: Some(*comparison),
                right: RightTable::Constant(*group),
            },
            JoinPredicate::In(column, group) => BoundPredicate {
                left: at(column)?,
                comparison: None,
                right: RightTable::List(*group),
            },
            JoinPredicate::Columns(left, comparison, right, added) => {
                let (left, right) = (at(left)?, at(right)?);
                let signed = |(table, position): At| {
                    let comparable = integer(tables.get(table)?, position)?;
                    Some(!matches!(comparable, Comparable::Integer { unsigned: true, .. }))
                };
                // A subtraction from an unsigned number may be an error.
                if left.0 == right.0 || (added.is_some() && !signed(right)?) {
                    return None;
                }
                let right = RightTable::Column(right, *added);
                BoundPredicate { left, comparison: Some(*comparison), right }
            }
            JoinPredicate::InChain(column, selected, chain) => {
                let left = at(column)?;
                let (chain, slots) = self.chain(chain, &[selected])?;
                let (table, position) = chain.described(selected)?;
                integer(table, position)?;
                before.push((chain, *slots.first()?));
                BoundPredicate {
                    left,
                    comparison: None,
                    right: RightTable::Before(before.len() - 1),
                }
            }
        })
    }
}

/// The only table that has the column.
fn find(tables: &[ShapeTable], column: &ColumnName) -> Option<At> {
    let mut found = tables
        .iter()
        .enumerate()
        .filter_map(|(number, table)| Some((number, table.position(column)?)));
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

/// How a column compares, if it is an integer column.
fn integer(table: &ShapeTable, position: usize) -> Option<Comparable> {
    let comparable = table.operand(position)?.comparable?;
    matches!(comparable, Comparable::Integer { .. }).then_some(comparable)
}

/// Tables and conditions, to be put in reading order.
struct Layout {
    tables: Vec<ShapeTable>,
    known: Vec<BoundPredicate>,
    wanted: Vec<At>,
}

impl Layout {
    fn chain(self, before: Vec<(JoinChain, usize)>) -> Option<(JoinChain, Vec<usize>)> {
        // A temporary table is read whole, once.
        let whole = self.tables.iter().position(|table| table.temporary.is_some());
        let mut order: Vec<usize> = whole.into_iter().collect();
        while order.len() < self.tables.len() {
            let rest = (0..self.tables.len()).filter(|table| !order.contains(table));
            // Among equals, the first table of the text.
            let best = rest.rev().max_by_key(|&table| self.bound(table, &order))?;
            if self.bound(best, &order) == 0 {
                return None;
            }
            order.push(best);
        }
        let fields: Vec<Vec<usize>> = (0..order.len()).map(|table| self.fields(table)).collect();
        let slot = |(table, position): At| {
            let base: usize =
                order.iter().take_while(|other| **other != table).map(|t| fields[*t].len()).sum();
            Some(base + fields[table].iter().position(|field| *field == position)?)
        };
        let wanted: Option<Vec<usize>> = self.wanted.iter().map(|at| slot(*at)).collect();
        let mut steps = Vec::new();
        for (nth, &table) in order.iter().enumerate() {
            let mut tests = Vec::new();
            for known in &self.known {
                if let Some(test) = self.test(known, table, &order[..nth], &fields[table], &slot)? {
                    tests.push(test);
                }
            }
            steps.push((table, tests));
        }
        let mut tables: Vec<Option<ShapeTable>> = self.tables.into_iter().map(Some).collect();
        let steps = steps.into_iter().map(|(number, tests)| {
            let table = tables.get_mut(number)?.take()?;
            let fields = fields.get(number)?.clone();
            let key = key(&table, &fields, &tests);
            Some(JoinStep { table, fields, tests, key })
        });
        let steps = steps.collect::<Option<_>>()?;
        Some((JoinChain { steps, before }, wanted?))
    }

    /// How much of a table's key is known: twice the number of leading key columns with known values, plus one for a
    /// range of the next column. A second temporary table cannot be looked up by key.
    fn bound(&self, table: usize, read: &[usize]) -> usize {
        if self.tables.get(table).is_none_or(|table| table.temporary.is_some()) {
            return 0;
        }
        let key = self.tables.get(table).map(|it| it.schema().primary_key.as_slice());
        let mut bound = 0;
        for &position in key.unwrap_or_default() {
            let of_part = self
                .known
                .iter()
                .filter_map(|known| known.oriented(table, read).filter(|(at, ..)| *at == position));
            let mut ranged = false;
            let mut equal = false;
            for (_, comparison, _) in of_part {
                equal |= matches!(comparison, None | Some(Comparison::Equal));
                ranged |= !matches!(comparison, Some(Comparison::NotEqual));
            }
            bound += if equal { 2 } else { usize::from(ranged) };
            if !equal {
                break;
            }
        }
        bound
    }

    /// The positions of a table's columns that are tested or selected.
    fn fields(&self, table: usize) -> Vec<usize> {
        let said = self.known.iter().flat_map(|known| {
            let right = match known.right {
                RightTable::Column(at, _) => Some(at),
                _ => None,
            };
            [Some(known.left), right]
        });
        let all = said.flatten().chain(self.wanted.iter().copied());
        let mut fields: Vec<usize> =
            all.filter(|(of, _)| *of == table).map(|(_, position)| position).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// The test of a table that a condition gives once the tables of `read` are read; the inner `None` if it gives
    /// none.
    fn test(
        &self,
        known: &BoundPredicate,
        table: usize,
        read: &[usize],
        fields: &[usize],
        slot: &dyn Fn(At) -> Option<usize>,
    ) -> Option<Option<JoinTest>> {
        let Some((position, comparison, right)) = known.oriented(table, read) else {
            return Some(None);
        };
        let of = self.tables.get(table)?;
        let with = match (right, comparison) {
            (RightTable::Constant(group), Some(comparison)) => {
                Comparand::Constant(comparison, group)
            }
            (RightTable::List(group), _) => Comparand::List(group),
            (RightTable::Before(chain), _) => Comparand::Before(chain),
            (RightTable::Column(at, added), Some(comparison)) => {
                Comparand::Slot(comparison, slot(at)?, added)
            }
            _ => return None,
        };
        let field = fields.iter().position(|field| *field == position)?;
        let (operand, comparable) = (of.operand(position)?, integer(of, position)?);
        Some(Some(JoinTest { field, operand, comparable, with }))
    }
}

impl BoundPredicate {
    /// The condition with a column of the table on its left, if its right side is known once `read` are read.
    fn oriented(
        &self,
        table: usize,
        read: &[usize],
    ) -> Option<(usize, Option<Comparison>, RightTable)> {
        match self.right {
            RightTable::Column(right, added) => {
                let comparison = self.comparison?;
                if self.left.0 == table && read.contains(&right.0) {
                    return Some((self.left.1, Some(comparison), self.right));
                }
                if right.0 == table && read.contains(&self.left.0) {
                    let opposite =
                        added.map(|it| LiteralOffset { subtracted: !it.subtracted, ..it });
                    let other = RightTable::Column(self.left, opposite);
                    return Some((right.1, Some(comparison.mirrored()), other));
                }
                None
            }
            right => (self.left.0 == table).then_some((self.left.1, self.comparison, right)),
        }
    }
}

/// The tests that give the values of the key columns.
fn key(table: &ShapeTable, fields: &[usize], tests: &[JoinTest]) -> Vec<usize> {
    let is_equal = |test: &JoinTest| match test.with {
        Comparand::Constant(comparison, _) | Comparand::Slot(comparison, ..) => {
            comparison == Comparison::Equal
        }
        Comparand::List(_) | Comparand::Before(_) => true,
    };
    let says = |position: usize| {
        tests.iter().position(|test| is_equal(test) && fields.get(test.field) == Some(&position))
    };
    let key = table.schema().primary_key.iter().map(|&position| says(position));
    key.collect::<Option<_>>().unwrap_or_default()
}
