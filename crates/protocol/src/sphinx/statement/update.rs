//! Converts a request to change attributes to UPDATE, one statement for each row.

use super::{Column, ColumnKind, Result, TableShape, quote};
use crate::sphinx::{UpdateRequest, UpdatedValue};

/// The statements that change the rows. Each changes one row or none. There are none if no attribute is to be changed.
///
/// # Errors
/// A sentence if an attribute does not exist or cannot hold a number.
pub fn updates(request: &UpdateRequest<'_>, shape: &TableShape) -> Result<Vec<String>> {
    let mut columns = Vec::with_capacity(request.attributes.len());
    for attribute in &request.attributes {
        let name = &*attribute.name;
        let column = shape.attributes().find(|column| column.name.eq_ignore_ascii_case(name));
        match column {
            Some(column) => check(column, attribute.is_list, shape)?,
            None if request.ignores_unknown => {}
            None => return Err(shape.refuse(format!("attribute '{name}' not found"))),
        }
        columns.push(column);
    }
    if columns.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let table = shape.quoted();
    let key = quote::name(&shape.key);
    let statement = |row: &crate::sphinx::UpdatedRow| {
        let set: Vec<String> =
            columns.iter().zip(&row.values).filter_map(|(c, v)| assigned((*c)?, v)).collect();
        format!("UPDATE {table} SET {} WHERE {key} = {}", set.join(", "), row.id)
    };
    Ok(request.rows.iter().map(statement).collect())
}

fn check(column: &Column, is_list: bool, shape: &TableShape) -> Result<()> {
    let name = &column.name;
    if column.kind.is_set() {
        let mismatch = || shape.refuse(format!("attribute '{name}' MVA flag mismatch"));
        return if is_list { Ok(()) } else { Err(mismatch()) };
    }
    if is_list {
        return Err(shape.refuse(format!("attribute '{name}' is no list of numbers")));
    }
    if matches!(column.kind, ColumnKind::Text | ColumnKind::Json) {
        return Err(shape.refuse(format!(
            "attribute '{name}' can not be updated (must be boolean, integer, bigint, float or \
             timestamp)"
        )));
    }
    Ok(())
}

fn assigned(column: &Column, value: &UpdatedValue) -> Option<String> {
    let name = quote::name(&column.name);
    let number = match value {
        UpdatedValue::Number(number) => *number,
        UpdatedValue::List(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            return Some(format!("{name} = '{}'", numbers.join(",")));
        }
    };
    Some(match column.kind {
        ColumnKind::Time => format!("{name} = FROM_UNIXTIME({number})"),
        ColumnKind::Number | ColumnKind::Bool => format!("{name} = {number}"),
        // Clients send numbers below zero too.
        _ => format!("{name} = {}", number as i32),
    })
}
