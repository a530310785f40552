//! A statement's shape against a table: what is asked of the engine, to be filled with constants.

use jiff::tz::TimeZone;
use remora_engine::{ColumnType, SortBy, SortKey};
use remora_mysql::Collation;

use super::{
    condition::{Test, Tests},
    keys::KeyTest,
    shape::{
        ColumnName, Group, Item, JsonKeys, Keywords, Match, OrderBy, Repeated, Select, Shape, Value,
    },
    table::Table,
};
use crate::{
    Column,
    catalog::Reader,
    meaning::types::ExprType,
    scan::{EngineTable, FewScan},
    shared::InstanceState,
};

/// Most rows of a search that are collected before they are sent.
pub(super) const MAX_PAGE_ROWS: u64 = 10_000;

/// A statement made ready for a table of one definition.
#[derive(Debug)]
pub(super) struct Plan {
    pub table: Table,
    /// The columns of the reply.
    pub columns: Vec<Column>,
    pub work: Work,
    pub limit: Option<Group>,
    pub offset: Option<Group>,
}

/// What is asked of the engine.
#[derive(Debug)]
pub(super) enum Work {
    /// Rows by their keys.
    Keys(KeyWork),
    /// A page of a search.
    Page(PageWork),
    /// How many rows.
    Count(Tests),
    /// How many rows there are of each value.
    Facet(FacetWork),
    /// The least or the greatest values of columns.
    Ends(Tests, Vec<End>),
}

impl Work {
    /// The MATCH('…') by which rows are found.
    pub fn keywords(&self) -> Option<&Keywords> {
        match self {
            Self::Page(work) => work.tests.keywords(),
            Self::Facet(work) => work.tests.keywords(),
            Self::Count(tests) | Self::Ends(tests, _) => tests.keywords(),
            Self::Keys(_) => None,
        }
    }
}

/// Rows by their keys.
#[derive(Debug)]
pub(super) struct KeyWork {
    pub test: KeyTest,
    /// The positions of the columns that are sent.
    pub fields: Vec<usize>,
    pub branches: Repeated,
    pub order: KeyOrder,
}

/// In which order rows come that are asked for by their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOrder {
    /// By key.
    Ascending,
    /// By key, the greatest first.
    Descending,
    /// As they are asked for, each time anew.
    AsAsked,
    /// As they are asked for first.
    FirstAsked,
}

/// A page of a search.
#[derive(Debug)]
pub(super) struct PageWork {
    pub tests: Tests,
    pub fields: Vec<PageField>,
    pub sort: Vec<SortKey>,
    /// MATCHes that must be the one of the condition.
    pub scores: Vec<Match>,
    /// How rows are read by key where few are looked at.
    pub few: Option<FewScan>,
}

/// What is sent of a row that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageField {
    Column(usize),
    Score,
    /// The weight that the query by keywords gives.
    Weight,
}

/// The least or the greatest value of a column.
#[derive(Debug)]
pub(super) struct End {
    pub column: String,
    pub nullable: bool,
    /// The order at whose beginning it stands.
    pub sort: SortKey,
}

/// How many rows there are of each value.
#[derive(Debug)]
pub(super) struct FacetWork {
    pub tests: Tests,
    /// The name of the column.
    pub column: String,
    /// How its texts compare, where that is not as their bytes do.
    pub collation: Option<Collation>,
    /// What is selected.
    pub items: Vec<FacetItem>,
    /// The columns of which the least or, if so, the greatest value is selected too.
    pub ends: Vec<(String, bool)>,
    pub order: FacetOrder,
}

/// What is selected of a value's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FacetItem {
    Value,
    Count,
    /// The end of this number.
    End(usize),
}

impl FacetWork {
    /// Whether nothing depends on how many rows there are of a value.
    pub fn values_only(&self) -> bool {
        !self.items.contains(&FacetItem::Count) && self.order != FacetOrder::Frequent
    }
}

/// In which order values come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FacetOrder {
    /// The most frequent first.
    Frequent,
    /// By value; whether the greatest is first.
    Value(bool),
}

/// What an ORDER BY part means.
enum Ordered<'s> {
    Column(usize),
    Score(&'s Match),
    Weight,
    Count,
}

impl Plan {
    /// Makes a shape ready; `None` if the table or what is asked of it is not answered here.
    pub fn new(
        shape: &Shape,
        database: Option<&str>,
        shared: &InstanceState,
        reader: &Reader,
    ) -> Option<Self> {
        let select = &shape.select;
        let named = (select.database.as_deref().or(database), select.table.as_str());
        let table = Table::of(named, select.alias.as_deref(), shared, reader)?;
        if shape.branches.times > 1 {
            return Self::united(shape, table);
        }
        if let Some(keys) = &select.joined {
            let (work, columns) = joined(select, keys, &table)?;
            return Some(Self { table, columns, work, limit: None, offset: None });
        }
        let by_key = |table: &Table| Self::keys(select, shape.branches, table);
        let (work, columns) = match &select.items[..] {
            items if select.group.is_some() => facet(select, items, &table)?,
            [Item::One(Value::CountRows | Value::CountValues(_), _), ..] => count(select, &table)?,
            [Item::One(Value::Least(_) | Value::Greatest(_), _), ..] => ends(select, &table)?,
            _ => by_key(&table).or_else(|| page(select, &table, reader))?,
        };
        Some(Self { table, columns, work, limit: select.limit, offset: select.offset })
    }

    /// Rows by their keys, if the condition names them.
    fn keys(select: &Select, branches: Repeated, table: &Table) -> Option<(Work, Vec<Column>)> {
        let test = KeyTest::new(select.condition.as_ref()?, table)?;
        let (fields, columns) = fields(&select.items, table)?;
        let order = match select.order.as_slice() {
            [] => KeyOrder::Ascending,
            [(by, descending)] => {
                let Ordered::Column(position) = ordered(by, select, table)? else { return None };
                match (table.schema().primary_key.as_slice() == [position], descending) {
                    (true, false) => KeyOrder::Ascending,
                    (true, true) => KeyOrder::Descending,
                    (false, _) => return None,
                }
            }
            _ => return None,
        };
        Some((Work::Keys(KeyWork { test, fields, branches, order }), columns))
    }

    /// A UNION of SELECTs by key.
    fn united(shape: &Shape, table: Table) -> Option<Self> {
        let select = &shape.select;
        let (Work::Keys(mut work), mut columns) = Self::keys(select, shape.branches, &table)?
        else {
            return None;
        };
        let whole_key = table.schema().primary_key.iter().all(|part| work.fields.contains(part));
        let distinct_by_key = whole_key && work.test.is_integers();
        if !shape.all && !distinct_by_key {
            return None;
        }
        work.order = if shape.all { KeyOrder::AsAsked } else { KeyOrder::FirstAsked };
        for column in &mut columns {
            // Columns of a UNION belong to no table.
            column.database.clear();
            column.table.clear();
            column.original_table.clear();
            column.original_name.clone_from(&column.name);
            column.primary_key = false;
            column.auto_increment = false;
        }
        Some(Self { table, columns, work: Work::Keys(work), limit: None, offset: None })
    }
}

/// The columns of rows.
fn fields(items: &[Item], table: &Table) -> Option<(Vec<usize>, Vec<Column>)> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Every(name) if table.is_called(name.as_deref()) => {
                for (position, definition, spec) in table.sql.visible() {
                    if !spec.invisible {
                        fields.push(position);
                        columns.push(table.described(position, &definition.name)?);
                    }
                }
            }
            Item::One(Value::Column(column), name) => {
                let position = table.position(column)?;
                fields.push(position);
                columns.push(table.described(position, name)?);
            }
            _ => return None,
        }
    }
    Some((fields, columns))
}

/// The rows of keys that JSON_TABLE gives, as often as it gives them.
fn joined(select: &Select, keys: &JsonKeys, table: &Table) -> Option<(Work, Vec<Column>)> {
    let plain = select.condition.is_none() && select.group.is_none() && select.order.is_empty();
    let may_be_keys = |item: &Item| match item {
        Item::Every(name) => name.is_none(),
        Item::One(Value::Column(ColumnName { table: None, name, .. }), _) => {
            name.eq_ignore_ascii_case(&keys.column)
        }
        Item::One(..) => false,
    };
    if !plain || select.limit.is_some() || select.items.iter().any(may_be_keys) {
        return None;
    }
    let test = KeyTest::joined(keys, table)?;
    let (fields, columns) = fields(&select.items, table)?;
    let branches = Repeated { times: 1, groups: 0 };
    Some((Work::Keys(KeyWork { test, fields, branches, order: KeyOrder::AsAsked }), columns))
}

fn page(select: &Select, table: &Table, reader: &Reader) -> Option<(Work, Vec<Column>)> {
    // Without a condition all rows are asked for: they are not collected.
    if select.limit.is_none() && select.condition.is_none() {
        return None;
    }
    let tests = Tests::new(select.condition.as_ref(), table)?;
    let (mut page_fields, mut columns, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    for item in &select.items {
        if let Item::One(Value::Score(score), name) = item {
            scores.push(score.clone());
            page_fields.push(PageField::Score);
            columns.push(ExprType::double().not_null().column_named(name));
            continue;
        }
        if let Item::One(Value::Weight, name) = item {
            tests.keywords()?;
            page_fields.push(PageField::Weight);
            columns.push(ExprType::int(21).column_named(name));
            continue;
        }
        let (of_item, described) = fields(std::slice::from_ref(item), table)?;
        page_fields.extend(of_item.into_iter().map(PageField::Column));
        columns.extend(described);
    }
    let mut sort = Vec::new();
    for (by, descending) in &select.order {
        let by = match ordered(by, select, table)? {
            Ordered::Column(position) => SortBy::Column(sortable(position, table)?),
            Ordered::Score(score) => {
                scores.push(score.clone());
                SortBy::Score
            }
            Ordered::Weight => {
                tests.keywords()?;
                SortBy::Score
            }
            Ordered::Count => return None,
        };
        sort.push(SortKey { by, descending: *descending });
    }
    // Of rows that weigh the same the lowest key comes first.
    if tests.keywords().is_some() && sort.last().is_some_and(|last| last.by == SortBy::Score) {
        sort.push(SortKey { by: SortBy::Key, descending: false });
    }
    if sort.is_empty() {
        let by_rank = tests.ranks();
        let by = if by_rank { SortBy::Score } else { SortBy::Key };
        sort.push(SortKey { by, descending: by_rank });
        if by_rank {
            sort.push(SortKey { by: SortBy::Key, descending: false });
        }
    }
    let by_key = tests.texts.is_empty() && scores.is_empty() && is_key_order(&sort, table);
    let few = by_key.then(|| few(&page_fields, table, reader)).flatten();
    Some((Work::Page(PageWork { tests, fields: page_fields, sort, scores, few }), columns))
}

/// Whether an order is that of the keys.
fn is_key_order(sort: &[SortKey], table: &Table) -> bool {
    let key = &table.schema().primary_key;
    let is_part = |(sort, position): (&SortKey, &usize)| {
        let part = table.schema().columns.get(*position);
        let named =
            matches!(&sort.by, SortBy::Column(name) if part.is_some_and(|it| it.name == *name));
        named && !sort.descending
    };
    match sort {
        [SortKey { by: SortBy::Key, descending }] => !descending,
        sort => sort.len() <= key.len() && sort.iter().zip(key).all(is_part),
    }
}

/// Reads these columns of few rows.
fn few(fields: &[PageField], table: &Table, reader: &Reader) -> Option<FewScan> {
    let position = |field: &PageField| match field {
        PageField::Column(position) => Some(*position),
        PageField::Score | PageField::Weight => None,
    };
    let positions = fields.iter().map(position).collect::<Option<Vec<usize>>>()?;
    let (reader, name) = (reader.clone(), table.engine_name.clone());
    let read = EngineTable::new(reader, &table.name, name, None, TimeZone::UTC).ok()?;
    read.few_of(&positions)
}

fn count(select: &Select, table: &Table) -> Option<(Work, Vec<Column>)> {
    let plain = select.order.is_empty() && select.limit.is_none();
    let [Item::One(value, name)] = select.items.as_slice() else { return None };
    let mut tests = Tests::new(select.condition.as_ref(), table)?;
    if let Value::CountValues(column) = value {
        let position = table.position(column)?;
        if table.schema().columns.get(position)?.nullable {
            tests.columns.push(Test::IsNull(table.tested(column)?, false));
        }
    }
    plain.then(|| (Work::Count(tests), vec![ExprType::int(21).not_null().column_named(name)]))
}

fn ends(select: &Select, table: &Table) -> Option<(Work, Vec<Column>)> {
    let plain = select.order.is_empty() && select.limit.is_none();
    let tests = Tests::new(select.condition.as_ref(), table)?;
    let (mut ends, mut columns) = (Vec::new(), Vec::new());
    for item in &select.items {
        let (end, described) = end(item, table)?;
        ends.push(end);
        columns.push(described);
    }
    let plain_numbers = columns.iter().all(|column| column.collation == Collation::BINARY.0);
    (plain && plain_numbers).then_some((Work::Ends(tests, ends), columns))
}

/// MIN or MAX of a column, as it is found and as it is described.
fn end(item: &Item, table: &Table) -> Option<(End, Column)> {
    let (column, greatest, name) = match item {
        Item::One(Value::Least(column), name) => (column, false, name),
        Item::One(Value::Greatest(column), name) => (column, true, name),
        _ => return None,
    };
    let position = table.position(column)?;
    let kind = table.schema().columns.get(position)?.kind;
    let is_number = matches!(kind, ColumnType::Int(_) | ColumnType::Uint(_));
    let is_time = matches!(kind, ColumnType::Date | ColumnType::DateTime);
    if !is_number && !is_time && !matches!(kind, ColumnType::Decimal(..)) {
        return None;
    }
    let mut described = ExprType::null().column_named(name);
    let of_column = table.described(position, name)?;
    described.kind = of_column.kind;
    described.unsigned = of_column.unsigned;
    described.collation = of_column.collation;
    described.length = of_column.length;
    described.decimals = of_column.decimals;
    let column = sortable(position, table)?;
    // The order of the keys is at hand.
    let by = match table.schema().primary_key.first() == Some(&position) {
        true => SortBy::Key,
        false => SortBy::Column(column.clone()),
    };
    let nullable = table.schema().columns.get(position)?.nullable;
    Some((End { column, nullable, sort: SortKey { by, descending: greatest } }, described))
}

/// Whether an index has the rows of each value of a column in the order of another column.
fn has_ends(grouped: usize, end: &str, table: &Table) -> bool {
    let schema = table.schema();
    schema.indexes.iter().any(|index| match index.columns.as_slice() {
        [first, next, ..] => {
            let is_end = schema.columns.get(next.column).is_some_and(|column| column.name == end);
            first.column == grouped && is_end && next.order.is_none()
        }
        _ => false,
    })
}

fn facet(select: &Select, items: &[Item], table: &Table) -> Option<(Work, Vec<Column>)> {
    let tests = Tests::new(select.condition.as_ref(), table)?;
    let grouped = table.position(select.group.as_ref()?)?;
    // Values that are equal in SQL must be the same in the engine, or are found to be when it runs.
    if table.is_set(grouped) {
        // Rows are in the groups of all their numbers.
        return None;
    }
    let collation = table.asked(select.group.as_ref()?)?.collation;
    // Labels are in the order of their numbers in SQL, of their texts in the engine.
    let has_labels = table.sql.columns.get(grouped)?.kind.has_labels();
    if has_labels && !select.order.is_empty() {
        return None;
    }
    let (mut selected, mut ends, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match item {
            // Which index has them is known before what is asked where that is nothing.
            Item::One(Value::Least(_) | Value::Greatest(_), _) if select.condition.is_none() => {
                let (end, described) = end(item, table)?;
                if !has_ends(grouped, &end.column, table) {
                    return None;
                }
                selected.push(FacetItem::End(ends.len()));
                ends.push((end.column, end.sort.descending));
                columns.push(described);
            }
            Item::One(Value::CountRows, name) => {
                selected.push(FacetItem::Count);
                columns.push(ExprType::int(21).not_null().column_named(name));
            }
            Item::One(Value::Column(column), _) if table.position(column)? == grouped => {
                let (_, mut described) = fields(std::slice::from_ref(item), table)?;
                selected.push(FacetItem::Value);
                columns.append(&mut described);
            }
            _ => return None,
        }
    }
    let order = match select.order.as_slice() {
        [] if ends.is_empty() => FacetOrder::Frequent,
        [] => FacetOrder::Value(false),
        [(by, descending)] => match ordered(by, select, table)? {
            Ordered::Count if *descending => FacetOrder::Frequent,
            Ordered::Column(position) if position == grouped => FacetOrder::Value(*descending),
            _ => return None,
        },
        [(first, true), (second, false)] => {
            let first = ordered(first, select, table)?;
            let second = ordered(second, select, table)?;
            match (first, second) {
                (Ordered::Count, Ordered::Column(position)) if position == grouped => {
                    FacetOrder::Frequent
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    if !ends.is_empty() && (has_labels || order == FacetOrder::Frequent) {
        return None;
    }
    let column = table.schema().columns.get(grouped)?.name.clone();
    let work = FacetWork { tests, column, collation, items: selected, ends, order };
    Some((Work::Facet(work), columns))
}

/// What a part of ORDER BY means: an alias before a column.
fn ordered<'s>(by: &'s OrderBy, select: &'s Select, table: &Table) -> Option<Ordered<'s>> {
    let value = match by {
        OrderBy::Value(value) => value,
        OrderBy::Item(number) => {
            let every = select.items.iter().any(|item| matches!(item, Item::Every(_)));
            match select.items.get(number.checked_sub(1)?)? {
                Item::One(value, _) if !every => value,
                _ => return None,
            }
        }
    };
    let aliased = match value {
        Value::Column(ColumnName { table: None, name, .. }) => {
            let mut named = select.items.iter().filter_map(|item| match item {
                Item::One(value, alias) if alias.eq_ignore_ascii_case(name) => Some(value),
                _ => None,
            });
            named.next()
        }
        _ => None,
    };
    match aliased.unwrap_or(value) {
        Value::Column(column) => Some(Ordered::Column(table.position(column)?)),
        Value::Score(score) => Some(Ordered::Score(score)),
        Value::Weight => Some(Ordered::Weight),
        Value::CountRows => Some(Ordered::Count),
        _ => None,
    }
}

/// The column's name, if the engine orders its values as SQL does.
pub(super) fn sortable(position: usize, table: &Table) -> Option<String> {
    let definition = table.schema().columns.get(position)?;
    let spec = table.sql.columns.get(position)?;
    let same = match definition.kind {
        ColumnType::Text => {
            spec.kind.collation == Collation::UTF8MB4_0900_BIN && !spec.kind.has_labels()
        }
        ColumnType::Bytes | ColumnType::Json => false,
        _ => true,
    };
    (same && definition.indexed).then(|| definition.name.clone())
}
