//! Filters: conditions on the attributes of rows.
//!
//! ```text
//! filter := name, u32 type, test, u32 exclude                                        from 0x10E on
//! test   := 0 u32 count, i64s | 1 i64, i64 | 2 f32, f32 | 3 text | 4 u8 | 6 u32 count, texts
//! filter := name, u32 count, u32s, [count is 0: u32, u32], [>= 0x106: u32 exclude]   before
//! ```
//!
//! Before 0x114 whole numbers have 4 bytes and no sign.

use super::{Fields, RequestError, Result, Text};

/// Most filters of a query: `max_filters` of `searchd`.
const MAX_FILTERS: i32 = 256;
/// Most values of a filter: `max_filter_values` of `searchd`.
const MAX_VALUES: i32 = 4_096;

/// A condition on an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter<'a> {
    /// The attribute.
    pub attribute: Text<'a>,
    /// The test of its value.
    pub test: FilterTest<'a>,
    /// Whether the condition is negated.
    pub is_excluding: bool,
}

/// The test of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterTest<'a> {
    /// The value is one of these.
    Values(Vec<i64>),
    /// The value is between the two, both included.
    Range(i64, i64),
    /// The value is between the two, both included.
    FloatRange(f32, f32),
    /// The value is this text.
    Text(Text<'a>),
    /// The value is NULL, or if false, is not NULL.
    Null(bool),
    /// The value is one of these texts.
    Texts(Vec<Text<'a>>),
}

/// Reads the filters of a query.
pub(super) fn read<'a>(version: u16, fields: &mut Fields<'a>) -> Result<Vec<Filter<'a>>> {
    let count = fields.i32()?;
    if count > MAX_FILTERS {
        return Err(RequestError::FilterCount(count));
    }
    let filters = u32::try_from(count).map_err(|_| RequestError::Truncated)?;
    let mut place = 0;
    fields.entries(filters, 9, |fields| {
        let filter = read_one(version, place, fields)?;
        place += 1;
        Ok(filter)
    })
}

fn read_one<'a>(version: u16, place: usize, fields: &mut Fields<'a>) -> Result<Filter<'a>> {
    let attribute = fields.text()?;
    let reading = Reading { version, place, attribute: &attribute };
    let test = match version {
        0x10E.. => reading.typed(fields)?,
        _ => reading.untyped(fields)?,
    };
    let is_excluding = version >= 0x106 && fields.flag()?;
    Ok(Filter { attribute, test, is_excluding })
}

struct Reading<'r> {
    version: u16,
    place: usize,
    attribute: &'r str,
}

impl Reading<'_> {
    fn typed<'a>(&self, fields: &mut Fields<'a>) -> Result<FilterTest<'a>> {
        let kind = fields.i32()?;
        Ok(match kind {
            0 => FilterTest::Values(self.values(fields)?),
            1 => FilterTest::Range(self.number(fields)?, self.number(fields)?),
            2 => FilterTest::FloatRange(fields.f32()?, fields.f32()?),
            3 => FilterTest::Text(fields.text()?),
            4 => FilterTest::Null(fields.u8()? != 0),
            6 => {
                let count = self.count(fields)?;
                FilterTest::Texts(fields.entries(count, 4, Fields::text)?)
            }
            _ => return Err(RequestError::FilterType(kind)),
        })
    }

    fn untyped<'a>(&self, fields: &mut Fields<'a>) -> Result<FilterTest<'a>> {
        let values = self.values(fields)?;
        Ok(match values.is_empty() {
            true => FilterTest::Range(self.number(fields)?, self.number(fields)?),
            false => FilterTest::Values(values),
        })
    }

    fn values(&self, fields: &mut Fields<'_>) -> Result<Vec<i64>> {
        let bytes = if self.has_wide_numbers() { 8 } else { 4 };
        let count = self.count(fields)?;
        fields.entries(count, bytes, |fields| self.number(fields))
    }

    fn count(&self, fields: &mut Fields<'_>) -> Result<u32> {
        let count = fields.i32()?;
        let name = || self.attribute.to_owned();
        let wrong = || RequestError::SetLength { name: name(), filter: self.place, count };
        match u32::try_from(count) {
            Ok(values) if count <= MAX_VALUES => Ok(values),
            _ => Err(wrong()),
        }
    }

    fn number(&self, fields: &mut Fields<'_>) -> Result<i64> {
        if self.has_wide_numbers() { fields.i64() } else { fields.u32().map(i64::from) }
    }

    fn has_wide_numbers(&self) -> bool {
        self.version >= 0x114
    }
}
