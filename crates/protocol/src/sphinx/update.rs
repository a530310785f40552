//! A request to change attributes.
//!
//! ```text
//! body      := indexes, u32 count, [>= 0x103: u32 ignore what is not there], attributes, u32 count, rows
//! attribute := name, [>= 0x102: u32 whether a list]
//! row       := u64 id (< 0x101: u32), values
//! value     := u32, or of a list: u32 count, u32s
//! ```

use super::{
    RequestError,
    encode::{Fields, MAX_ENTRIES, Text},
};

/// The most values of a request, for all its rows together.
const MAX_VALUES: u32 = 1 << 18;

/// A request to change the values of attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateRequest<'a> {
    /// The names of the indexes, as one text.
    pub indexes: Text<'a>,
    /// Whether attributes that do not exist in an index are ignored.
    pub ignores_unknown: bool,
    /// The attributes to change.
    pub attributes: Vec<UpdatedAttribute<'a>>,
    /// The rows to change, with their new values.
    pub rows: Vec<UpdatedRow>,
}

/// An attribute to change.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatedAttribute<'a> {
    /// The name of the attribute.
    pub name: Text<'a>,
    /// Whether its values are lists.
    pub is_list: bool,
}

/// A row to change.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatedRow {
    /// The key of the row.
    pub id: u64,
    /// The new values, one for each attribute.
    pub values: Vec<UpdatedValue>,
}

/// The new value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum UpdatedValue {
    /// A number. Clients send negative numbers as the unsigned number with the same bits.
    Number(u32),
    /// A list of numbers.
    List(Vec<u32>),
}

impl<'a> UpdateRequest<'a> {
    /// Reads a body of a version.
    ///
    /// # Errors
    /// [`RequestError::TooMany`], [`RequestError::Truncated`].
    pub(super) fn read(version: u16, fields: &mut Fields<'a>) -> Result<Self, RequestError> {
        let indexes = fields.text()?;
        let count = fields.u32()?;
        check(count, "attributes", MAX_ENTRIES)?;
        let ignores_unknown = version >= 0x103 && fields.u32()? & 1 != 0;
        let attributes = fields.entries(count, 4, |fields| {
            let name = fields.text()?;
            Ok(UpdatedAttribute { name, is_list: version >= 0x102 && fields.flag()? })
        })?;
        let count = fields.u32()?;
        let width = u32::try_from(attributes.len()).unwrap_or(u32::MAX).max(1);
        check(count.saturating_mul(width), "values", MAX_VALUES)?;
        let id_bytes = if version >= 0x101 { 8 } else { 4 };
        let rows = fields.entries(count, id_bytes + 4 * attributes.len(), |fields| {
            let id = if version >= 0x101 { fields.u64()? } else { fields.u32()?.into() };
            let values = attributes.iter().map(|attribute| value(fields, attribute));
            Ok(UpdatedRow { id, values: values.collect::<Result<_, _>>()? })
        })?;
        Ok(Self { indexes, ignores_unknown, attributes, rows })
    }
}

fn check(count: u32, name: &'static str, most: u32) -> Result<(), RequestError> {
    if count > most { Err(RequestError::TooMany { name, count, most }) } else { Ok(()) }
}

fn value(
    fields: &mut Fields<'_>,
    attribute: &UpdatedAttribute<'_>,
) -> Result<UpdatedValue, RequestError> {
    let number = fields.u32()?;
    Ok(match attribute.is_list {
        true => UpdatedValue::List(fields.entries(number, 4, Fields::u32)?),
        false => UpdatedValue::Number(number),
    })
}
