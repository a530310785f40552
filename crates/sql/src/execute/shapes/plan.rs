//! A shape bound to a table: the engine request, with places for literals.

use remora_engine::{ColumnType, IndexColumn, SortBy, SortKey};
use remora_mysql::Collation;

use super::{
    condition::{ColumnTest, Tests},
    keys::KeyTest,
    shape::{
        ColumnName, JsonKeys, Keywords, LiteralGroup, Match, OrderBy, Repeated, Select, Shape,
        ShapeItem, Value,
    },
    table::ShapeTable,
};
use crate::{
    Column, ColumnKeys,
    catalog::Reader,
    meaning::{extracted_type, types::ExprType},
    shared::InstanceState,
};

/// The most rows of a search that are collected before they are sent.
pub(super) const MAX_PAGE_ROWS: u64 = 10_000;

/// A statement bound to a definition of its table.
#[derive(Debug)]
pub(super) struct ShapePlan {
    pub table: ShapeTable,
    /// The columns of the reply.
    pub columns: Vec<Column>,
    pub work: ShapeWork,
    pub limit: Option<LiteralGroup>,
    pub offset: Option<LiteralGroup>,
}

/// The engine request.
#[derive(Debug)]
pub(super) enum ShapeWork {
    /// Rows by their keys.
    Keys(KeyWork),
    /// A page of a search.
    Page(PageWork),
    /// The number of rows.
    Count(Tests),
    /// The number of rows of each value.
    Facet(FacetWork),
    /// The least or greatest values of columns.
    Ends(Tests, Vec<MinOrMax>),
}

impl ShapeWork {
    /// The MATCH('…') that finds the rows.
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
    /// The positions of the selected columns.
    pub fields: Vec<usize>,
    /// What is selected of documents among them. Only a single row has such.
    pub members: Vec<Member>,
    pub branches: Repeated,
    pub order: KeyOrder,
}

/// A part of a document that is selected in the document's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The index of the document among the selected columns.
    pub place: usize,
    pub path: LiteralGroup,
    /// Whether the text of a part is selected.
    pub is_text: bool,
}

/// The order of rows that are looked up by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOrder {
    /// By key, ascending.
    Ascending,
    /// By key, descending.
    Descending,
    /// In the order of the keys in the statement; duplicates are repeated.
    AsAsked,
    /// In the order of each key's first occurrence in the statement.
    FirstAsked,
}

/// A page of a search.
#[derive(Debug)]
pub(super) struct PageWork {
    pub tests: Tests,
    pub fields: Vec<PageField>,
    pub sort: Vec<SortKey>,
    /// MATCHes in the select list or ORDER BY. Each must be the one of the condition.
    pub scores: Vec<Match>,
    /// The positions of the columns if the page is in key order: it may be read by a scan that finds few rows.
    pub few: Option<Vec<usize>>,
}

/// A selected value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageField {
    Column(usize),
    Score,
    /// The weight that the keyword query computes.
    Weight,
}

/// The least or the greatest value of a column.
#[derive(Debug)]
pub(super) struct MinOrMax {
    pub column: String,
    pub nullable: bool,
    /// The order whose first row has the value.
    pub sort: SortKey,
}

/// The number of rows of each value, with least and greatest values of other columns.
#[derive(Debug)]
pub(super) struct FacetWork {
    pub tests: Tests,
    /// The grouped columns; several if an index has their values in this order.
    pub columns: Vec<FacetColumn>,
    /// What is selected.
    pub items: Vec<FacetItem>,
    /// The columns of which the least value is selected, or the greatest if the flag is set.
    pub ends: Vec<(String, bool)>,
    pub order: FacetOrder,
}

/// A grouped column.
#[derive(Clone, Debug)]
pub(super) struct FacetColumn {
    pub name: String,
    /// The collation by which its texts compare; `None` if they compare by bytes.
    pub collation: Option<Collation>,
}

impl FacetColumn {
    /// The number of the order of its texts in an index.
    pub fn text_order(&self) -> Option<u32> {
        self.collation.map(|collation| u32::from(collation.0))
    }
}

/// A selected value of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FacetItem {
    /// The value of the column with this number.
    Value(usize),
    Count,
    /// The least or greatest value with this number.
    MinOrMax(usize),
}

impl FacetWork {
    /// Whether only the distinct values matter, and not how many rows have them.
    pub fn values_only(&self) -> bool {
        !self.items.contains(&FacetItem::Count) && self.order != FacetOrder::Frequent
    }
}

/// The order of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FacetOrder {
    /// By number of rows, descending.
    Frequent,
    /// By value, descending if the flag is set.
    Value(bool),
}

/// The meaning of a part of ORDER BY.
enum Ordered<'s> {
    Column(usize),
    Score(&'s Match),
    Weight,
    Count,
}

impl ShapePlan {
    /// Binds a shape to its table; `None` if the table or the request is not supported here.
    pub fn new(
        shape: &Shape,
        database: Option<&str>,
        shared: &InstanceState,
        reader: &Reader,
    ) -> Option<Self> {
        let select = &shape.select;
        let named = (select.database.as_deref().or(database), select.table.as_str());
        let table = ShapeTable::of(named, select.alias.as_deref(), shared, reader)?;
        if table.is_elsewhere() {
            return Self::elsewhere(shape, table);
        }
        if shape.branches.times > 1 {
            return Self::united(shape, table);
        }
        if let Some(keys) = &select.joined {
            let (work, columns) = joined(select, keys, &table)?;
            return Some(Self { table, columns, work, limit: None, offset: None });
        }
        let (work, columns) = match aggregated(select, &table) {
            Some(aggregated) => aggregated?,
            None => {
                let by_key = Self::keys(select, shape.branches, &table);
                by_key.or_else(|| page(select, &table))?
            }
        };
        Some(Self { table, columns, work, limit: select.limit, offset: select.offset })
    }

    /// The same for a table with rows in other servers, which are asked for rows by a condition on columns and a keyword
    /// query, and for counts of them.
    fn elsewhere(shape: &Shape, table: ShapeTable) -> Option<Self> {
        let select = &shape.select;
        if shape.branches.times > 1 || select.joined.is_some() {
            return None;
        }
        let (work, columns) = match aggregated(select, &table) {
            Some(aggregated) => aggregated?,
            None => page(select, &table)?,
        };
        let is_asked = match &work {
            ShapeWork::Keys(_) => false,
            ShapeWork::Page(work) => work.tests.is_by_keywords() && work.scores.is_empty(),
            ShapeWork::Count(tests) | ShapeWork::Ends(tests, _) => tests.is_by_keywords(),
            ShapeWork::Facet(work) => {
                work.tests.is_by_keywords() && work.ends.is_empty() && work.columns.len() == 1
            }
        };
        let (limit, offset) = (select.limit, select.offset);
        is_asked.then_some(Self { table, columns, work, limit, offset })
    }

    /// Rows by key, if the condition names keys.
    fn keys(
        select: &Select,
        branches: Repeated,
        table: &ShapeTable,
    ) -> Option<(ShapeWork, Vec<Column>)> {
        let test = KeyTest::new(select.condition.as_ref()?, table)?;
        let (fields, columns, members) = fields_and_members(&select.items, table)?;
        let is_of_a_row = test.is_single && branches.times == 1 && select.limit.is_none();
        if !members.is_empty() && !is_of_a_row {
            return None;
        }
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
        Some((ShapeWork::Keys(KeyWork { test, fields, members, branches, order }), columns))
    }

    /// A UNION of SELECTs by key.
    fn united(shape: &Shape, table: ShapeTable) -> Option<Self> {
        let select = &shape.select;
        let (ShapeWork::Keys(mut work), mut columns) = Self::keys(select, shape.branches, &table)?
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
            // Result columns of a UNION belong to no table.
            column.database.clear();
            column.table.clear();
            column.original_table.clear();
            column.original_name.clone_from(&column.name);
            column.primary_key = false;
            column.auto_increment = false;
            column.keys = ColumnKeys::default();
        }
        Some(Self { table, columns, work: ShapeWork::Keys(work), limit: None, offset: None })
    }
}

/// What is done if aggregates are selected, `None` within if that is not supported here; `None` if rows are selected.
fn aggregated(select: &Select, table: &ShapeTable) -> Option<Option<(ShapeWork, Vec<Column>)>> {
    Some(match &select.items[..] {
        items if !select.groups.is_empty() => facet(select, items, table),
        [ShapeItem::One(Value::CountRows | Value::CountValues(_), _), ..] => count(select, table),
        [ShapeItem::One(Value::Least(_) | Value::Greatest(_), _), ..] => ends(select, table),
        _ => return None,
    })
}

/// The positions and descriptions of selected columns.
fn fields(items: &[ShapeItem], table: &ShapeTable) -> Option<(Vec<usize>, Vec<Column>)> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            ShapeItem::Every(name) if table.is_called(name.as_deref()) => {
                for (position, definition, spec) in table.sql.visible() {
                    if !spec.invisible {
                        fields.push(position);
                        columns.push(table.described(position, &definition.name)?);
                    }
                }
            }
            ShapeItem::One(Value::Column(column), name) => {
                let position = table.position(column)?;
                fields.push(position);
                columns.push(table.described(position, name)?);
            }
            _ => return None,
        }
    }
    Some((fields, columns))
}

/// The same with parts of documents.
fn fields_and_members(
    items: &[ShapeItem],
    table: &ShapeTable,
) -> Option<(Vec<usize>, Vec<Column>, Vec<Member>)> {
    let (mut all, mut columns, mut members) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        let ShapeItem::One(Value::Member { column, path, is_text }, name) = item else {
            let (of_item, described) = fields(std::slice::from_ref(item), table)?;
            all.extend(of_item);
            columns.extend(described);
            continue;
        };
        let position = table.position(column)?;
        if !table.has_documents(position) {
            return None;
        }
        members.push(Member { place: all.len(), path: *path, is_text: *is_text });
        columns.push(extracted_type(*is_text).column_named(name));
        all.push(position);
    }
    Some((all, columns, members))
}

/// Rows by the keys that JSON_TABLE gives. Repeated keys give repeated rows.
fn joined(
    select: &Select,
    keys: &JsonKeys,
    table: &ShapeTable,
) -> Option<(ShapeWork, Vec<Column>)> {
    let plain = select.condition.is_none() && select.groups.is_empty() && select.order.is_empty();
    let may_be_keys = |item: &ShapeItem| match item {
        ShapeItem::Every(name) => name.is_none(),
        ShapeItem::One(Value::Column(ColumnName { table: None, name, .. }), _) => {
            name.eq_ignore_ascii_case(&keys.column)
        }
        ShapeItem::One(..) => false,
    };
    if !plain || select.limit.is_some() || select.items.iter().any(may_be_keys) {
        return None;
    }
    let test = KeyTest::joined(keys, table)?;
    let (fields, columns) = fields(&select.items, table)?;
    let (branches, order) = (Repeated { times: 1, groups: 0 }, KeyOrder::AsAsked);
    Some((ShapeWork::Keys(KeyWork { test, fields, members: Vec::new(), branches, order }), columns))
}

fn page(select: &Select, table: &ShapeTable) -> Option<(ShapeWork, Vec<Column>)> {
    // Without condition and LIMIT all rows are wanted. They must be streamed, not collected.
    if select.limit.is_none() && select.condition.is_none() {
        return None;
    }
    let tests = Tests::new(select.condition.as_ref(), table)?;
    let (mut page_fields, mut columns, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    for item in &select.items {
        if let ShapeItem::One(Value::Score(score), name) = item {
            scores.push(score.clone());
            page_fields.push(PageField::Score);
            columns.push(ExprType::double().not_null().column_named(name));
            continue;
        }
        if let ShapeItem::One(Value::Weight, name) = item {
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
    // Rows of equal weight are in key order.
    if tests.keywords().is_some() && sort.last().is_some_and(|last| last.by == SortBy::Score) {
        sort.push(SortKey { by: SortBy::Key, descending: false });
    }
    if sort.is_empty() {
        let by_rank = tests.ranks();
        if tests.has_match() && !by_rank {
            return None;
        }
        let by = if by_rank { SortBy::Score } else { SortBy::Key };
        sort.push(SortKey { by, descending: by_rank });
        if by_rank {
            sort.push(SortKey { by: SortBy::Key, descending: false });
        }
    }
    let by_key = tests.texts.is_empty() && scores.is_empty() && is_key_order(&sort, table);
    let few = by_key.then(|| positions(&page_fields)).flatten();
    Some((ShapeWork::Page(PageWork { tests, fields: page_fields, sort, scores, few }), columns))
}

/// Whether a sort order is the key order.
fn is_key_order(sort: &[SortKey], table: &ShapeTable) -> bool {
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

/// The positions of these columns; `None` if one is a score.
fn positions(fields: &[PageField]) -> Option<Vec<usize>> {
    let position = |field: &PageField| match field {
        PageField::Column(position) => Some(*position),
        PageField::Score | PageField::Weight => None,
    };
    fields.iter().map(position).collect()
}

fn count(select: &Select, table: &ShapeTable) -> Option<(ShapeWork, Vec<Column>)> {
    let plain = select.order.is_empty() && select.limit.is_none();
    let [ShapeItem::One(value, name)] = select.items.as_slice() else { return None };
    let mut tests = Tests::new(select.condition.as_ref(), table)?;
    if let Value::CountValues(column) = value {
        let position = table.position(column)?;
        if table.schema().columns.get(position)?.nullable {
            tests.columns.push(ColumnTest::IsNull(table.tested(column)?, false));
        }
    }
    plain.then(|| (ShapeWork::Count(tests), vec![ExprType::int(21).not_null().column_named(name)]))
}

fn ends(select: &Select, table: &ShapeTable) -> Option<(ShapeWork, Vec<Column>)> {
    let plain = select.order.is_empty() && select.limit.is_none();
    let tests = Tests::new(select.condition.as_ref(), table)?;
    let (mut ends, mut columns) = (Vec::new(), Vec::new());
    for item in &select.items {
        let (end, described) = end(item, table)?;
        ends.push(end);
        columns.push(described);
    }
    let plain_numbers = columns.iter().all(|column| column.collation == Collation::BINARY.0);
    (plain && plain_numbers).then_some((ShapeWork::Ends(tests, ends), columns))
}

/// MIN or MAX of a column: the request and the description of its result.
fn end(item: &ShapeItem, table: &ShapeTable) -> Option<(MinOrMax, Column)> {
    let (column, greatest, name) = match item {
        ShapeItem::One(Value::Least(column), name) => (column, false, name),
        ShapeItem::One(Value::Greatest(column), name) => (column, true, name),
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
    // Key order costs nothing.
    let by = match table.schema().primary_key.first() == Some(&position) {
        true => SortBy::Key,
        false => SortBy::Column(column.clone()),
    };
    let nullable = table.schema().columns.get(position)?.nullable;
    Some((MinOrMax { column, nullable, sort: SortKey { by, descending: greatest } }, described))
}

/// Whether an index has, for each value of the grouped columns, the rows in the order of another column.
fn has_ends(grouped: &[usize], end: &str, table: &ShapeTable) -> bool {
    let schema = table.schema();
    schema.indexes.iter().any(|index| {
        let columns = index.columns.iter().map(|part| part.column);
        let has_prefix = index.columns.iter().take(grouped.len()).any(|part| part.prefix.is_some());
        let next = index.columns.get(grouped.len()).filter(|_| !has_prefix);
        let next = next.filter(|next| next.order.is_none() && next.prefix.is_none());
        let next = next.and_then(|next| schema.columns.get(next.column));
        next.is_some_and(|next| next.name == end)
            && columns.take(grouped.len()).eq(grouped.iter().copied())
    })
}

/// Several grouped columns in the order in which an index has their values, all in one direction; `None` if none has.
/// `first` are the columns that must come first.
fn in_index_order(grouped: &[usize], first: &[usize], table: &ShapeTable) -> Option<Vec<usize>> {
    table.schema().indexes.iter().find_map(|index| {
        let parts = index.columns.get(..grouped.len())?;
        let columns: Vec<usize> = parts.iter().map(|part| part.column).collect();
        let descending = parts.first().is_some_and(|part| part.descending);
        let is_sorted = |part: &IndexColumn| {
            let operand = table.asked_at(part.column).filter(|_| part.descending == descending);
            part.prefix.is_none()
                && operand.is_some_and(|it| part.order == it.collation.map(|it| u32::from(it.0)))
        };
        let fits = columns.starts_with(first)
            && grouped.iter().all(|column| columns.contains(column))
            && columns.iter().all(|column| grouped.contains(column))
            && parts.iter().all(is_sorted);
        fits.then_some(columns)
    })
}

/// The grouped columns, in the order of their values.
fn grouped(select: &Select, table: &ShapeTable) -> Option<Vec<usize>> {
    let grouped = select.groups.iter().map(|column| table.position(column));
    let grouped: Vec<usize> = grouped.collect::<Option<_>>()?;
    // A row with a set belongs to one group for each of its numbers.
    if grouped.iter().any(|position| table.is_set(*position)) {
        return None;
    }
    if grouped.len() == 1 {
        return Some(grouped);
    }
    // Only without a condition is it known beforehand that an index has these values.
    if select.condition.is_some() {
        return None;
    }
    let position = |(by, _): &(OrderBy, bool)| match ordered(by, select, table)? {
        Ordered::Column(position) => Some(position),
        _ => None,
    };
    let first: Vec<usize> = select.order.iter().map(position).collect::<Option<_>>()?;
    in_index_order(&grouped, &first, table)
}

/// The order of the groups; `None` if that is not supported here. Without ORDER BY they are in the order of their values
/// if `by_value`, as an index has them, or else those with the most rows come first.
fn facet_order(
    select: &Select,
    grouped: &[usize],
    by_value: bool,
    table: &ShapeTable,
) -> Option<FacetOrder> {
    let [only] = grouped else {
        // The columns are in the order of the ORDER BY.
        let descending = select.order.first().is_some_and(|(_, descending)| *descending);
        let is_one_way = select.order.iter().all(|(_, it)| *it == descending);
        return is_one_way.then_some(FacetOrder::Value(descending));
    };
    Some(match select.order.as_slice() {
        [] if !by_value => FacetOrder::Frequent,
        [] => FacetOrder::Value(false),
        [(by, descending)] => match ordered(by, select, table)? {
            Ordered::Count if *descending => FacetOrder::Frequent,
            Ordered::Column(position) if position == *only => FacetOrder::Value(*descending),
            _ => return None,
        },
        [(first, true), (second, false)] => {
            let first = ordered(first, select, table)?;
            let second = ordered(second, select, table)?;
            match (first, second) {
                (Ordered::Count, Ordered::Column(position)) if position == *only => {
                    FacetOrder::Frequent
                }
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn facet(
    select: &Select,
    items: &[ShapeItem],
    table: &ShapeTable,
) -> Option<(ShapeWork, Vec<Column>)> {
    let tests = Tests::new(select.condition.as_ref(), table)?;
    // Values that are equal in SQL must be identical in the engine, or `run` checks that they are.
    let grouped = grouped(select, table)?;
    // SQL orders labels (ENUM, SET) by their numbers, the engine by their texts.
    let is_of_labels =
        |position: &usize| table.sql.columns.get(*position).is_none_or(|it| it.kind.has_labels());
    let has_labels = grouped.iter().any(is_of_labels);
    if has_labels && (!select.order.is_empty() || grouped.len() > 1) {
        return None;
    }
    let (mut selected, mut ends, mut columns) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match item {
            // Only without a condition is it known beforehand that an index has these values.
            ShapeItem::One(Value::Least(_) | Value::Greatest(_), _)
                if select.condition.is_none() =>
            {
                let (end, described) = end(item, table)?;
                if !has_ends(&grouped, &end.column, table) {
                    return None;
                }
                selected.push(FacetItem::MinOrMax(ends.len()));
                ends.push((end.column, end.sort.descending));
                columns.push(described);
            }
            ShapeItem::One(Value::CountRows, name) => {
                selected.push(FacetItem::Count);
                columns.push(ExprType::int(21).not_null().column_named(name));
            }
            ShapeItem::One(Value::Column(column), _) => {
                let position = table.position(column)?;
                let place = grouped.iter().position(|grouped| *grouped == position)?;
                let (_, mut described) = fields(std::slice::from_ref(item), table)?;
                selected.push(FacetItem::Value(place));
                columns.append(&mut described);
            }
            _ => return None,
        }
    }
    // Values alone are read from an index without counting rows.
    let has_index = in_index_order(&grouped, &[], table).is_some();
    let are_values = has_index && !has_labels && !selected.contains(&FacetItem::Count);
    let order = facet_order(select, &grouped, are_values || !ends.is_empty(), table)?;
    if !ends.is_empty() && (has_labels || order == FacetOrder::Frequent) {
        return None;
    }
    let column = |position: &usize| {
        let name = table.schema().columns.get(*position)?.name.clone();
        Some(FacetColumn { name, collation: table.asked_at(*position)?.collation })
    };
    let of_columns = grouped.iter().map(column).collect::<Option<_>>()?;
    let work = FacetWork { tests, columns: of_columns, items: selected, ends, order };
    Some((ShapeWork::Facet(work), columns))
}

/// The meaning of a part of ORDER BY. An alias takes precedence over a column.
fn ordered<'s>(by: &'s OrderBy, select: &'s Select, table: &ShapeTable) -> Option<Ordered<'s>> {
    let value = match by {
        OrderBy::Value(value) => value,
        OrderBy::Item(number) => {
            let every = select.items.iter().any(|item| matches!(item, ShapeItem::Every(_)));
            match select.items.get(number.checked_sub(1)?)? {
                ShapeItem::One(value, _) if !every => value,
                _ => return None,
            }
        }
    };
    let aliased = match value {
        Value::Column(ColumnName { table: None, name, .. }) => {
            let mut named = select.items.iter().filter_map(|item| match item {
                ShapeItem::One(value, alias) if alias.eq_ignore_ascii_case(name) => Some(value),
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
pub(super) fn sortable(position: usize, table: &ShapeTable) -> Option<String> {
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
