//! A search: up to 32 queries, each of which has the fields of its version.
//!
//! ```text
//! body  := [>= 0x118: u32 master], [>= 0x10D: u32 count], queries
//! query := [>= 0x11B: u32 flags: of no others than those below], u32 offset, u32 limit, u32 mode,
//!          [>= 0x110: u32 ranker, [8, 9: expression]], u32 sort, [>= 0x102: sort clause], query,
//!          u32 count, u32 weights, indexes, [>= 0x108: u32 whether ids have 64 bits], min id, max id,
//!          [>= 0x102: u32 count, filters], [>= 0x103: u32 group function, group column],
//!          [>= 0x104: u32 max_matches], [>= 0x107: group order | >= 0x105: u32 whether by group],
//!          [>= 0x109: u32 cutoff], [>= 0x10A: u32 retries, u32 delay], [>= 0x10B: distinct],
//!          [>= 0x10E: u32 whether an anchor, [latitude, longitude, f32, f32]],
//!          [>= 0x10F: u32 count, {name, u32}], [>= 0x111: u32 max_query_time],
//!          [>= 0x112: u32 count, {name, u32}], [>= 0x113: comment], [>= 0x115: u32 count, overrides],
//!          [>= 0x116: select list], [flag 4: u32 max_predicted_time],
//!          [>= 0x11D: outer order, u32 offset, u32 limit, u32 whether there is one]
//! ```

mod codes;
mod filter;

pub use codes::{MatchMode, Ranker, SortMode};
pub use filter::{Filter, FilterTest};

use super::{
    RequestError,
    encode::{Fields, Text},
};

type Result<T> = std::result::Result<T, RequestError>;

/// Most queries of a request.
const MAX_QUERIES: i32 = 32;
/// Most field weights by position.
const MAX_FIELDS: u32 = 256;
const MAX_RETRIES: i32 = 8;
const MAX_RETRY_DELAY_MS: i32 = 1_000;
const DEFAULT_MAX_MATCHES: i32 = 1_000;
const DEFAULT_GROUP_ORDER: &str = "@group desc";

const HAS_PREDICTED_TIME: u32 = 4;
const PLAIN_IDF: u32 = 16;
const GLOBAL_IDF: u32 = 32;
const DIVIDED_IDF: u32 = 64;
/// Flags that change no answer here: reverse scan, the kind of sorting, simpler queries, one count of rows for all parts
/// of a table (which has one anyway), low priority.
const HARMLESS: u32 = 1 | 2 | 8 | 128 | 256;
const KNOWN_FLAGS: u32 = HARMLESS | HAS_PREDICTED_TIME | PLAIN_IDF | GLOBAL_IDF | DIVIDED_IDF;
/// Only clients of exactly this version say whether the IDF is divided by the number of keywords.
const SAYS_DIVIDED: u16 = 0x11E;

/// The queries of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRequest<'a> {
    /// The client's version, which decides the form of the reply.
    pub version: u16,
    /// The queries; 1 to 32.
    pub queries: Vec<Query<'a>>,
}

/// One query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query<'a> {
    /// Whether IDF is computed in its plain form, without regard to the rows that lack the word.
    pub is_idf_plain: bool,
    /// Whether the IDF of a word is not divided by the number of keywords.
    pub is_idf_undivided: bool,
    /// Whether the IDF comes from a file of the server.
    pub is_idf_global: bool,
    /// The number of rows to skip.
    pub offset: u32,
    /// The most rows to return.
    pub limit: u32,
    /// How the text is read.
    pub mode: MatchMode,
    /// How rows are weighed.
    pub ranker: Ranker<'a>,
    /// How rows are sorted.
    pub sort: SortMode,
    /// The attribute, clause or expression to sort by.
    pub sort_clause: Text<'a>,
    /// The text of the query.
    pub text: Text<'a>,
    /// The weights of fields, by position.
    pub weights: Vec<u32>,
    /// The indexes: names separated by anything, or `*`.
    pub indexes: Text<'a>,
    /// The least key to find.
    pub min_id: u64,
    /// The greatest key to find; 0 means no limit.
    pub max_id: u64,
    /// The filters. A row must satisfy all of them.
    pub filters: Vec<Filter<'a>>,
    /// How rows are grouped.
    pub group: Group<'a>,
    /// The most rows that are kept before offset and limit apply.
    pub max_matches: u32,
    /// The most rows that are looked for; 0 means all.
    pub cutoff: u32,
    /// A place from which distances are computed.
    pub anchor: Option<Anchor<'a>>,
    /// Weights of indexes by name.
    pub index_weights: Vec<(Text<'a>, u32)>,
    /// The milliseconds after which a search may stop; 0 means never.
    pub max_query_ms: u32,
    /// Weights of fields by name.
    pub field_weights: Vec<(Text<'a>, u32)>,
    /// A comment for the log.
    pub comment: Text<'a>,
    /// The attributes whose values are overridden for this query.
    pub overrides: Vec<Text<'a>>,
    /// The select list; empty is `*`.
    pub select: Text<'a>,
    /// A second order, of the rows that are kept, with its own limits.
    pub outer: Option<Outer<'a>>,
}

impl Query<'_> {
    /// The most rows that can be shown, before offset and limit apply.
    #[must_use]
    pub fn most_rows(&self) -> u32 {
        match self.cutoff {
            0 => self.max_matches,
            cutoff => self.max_matches.min(cutoff),
        }
    }
}

/// How rows are grouped.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'a> {
    /// The function of the column: 0 day, 1 week, 2 month, 3 year, 4 the value itself.
    pub function: u32,
    /// The column to group by; empty means no groups.
    pub column: Text<'a>,
    /// The order of groups.
    pub order: Text<'a>,
    /// The column whose distinct values are counted; may be empty.
    pub distinct: Text<'a>,
}

impl Default for Group<'_> {
    fn default() -> Self {
        Self {
            function: 0,
            column: Text::default(),
            order: DEFAULT_GROUP_ORDER.into(),
            distinct: Text::default(),
        }
    }
}

/// A place on earth, in radians.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor<'a> {
    /// The column of latitudes.
    pub latitude_column: Text<'a>,
    /// The column of longitudes.
    pub longitude_column: Text<'a>,
    /// The latitude of the place.
    pub latitude: f32,
    /// The longitude of the place.
    pub longitude: f32,
}

/// A second order, of the rows that are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Outer<'a> {
    /// The ORDER BY clause.
    pub order: Text<'a>,
    /// The number of rows to skip.
    pub offset: u32,
    /// The most rows to return; 0 means no limit.
    pub limit: u32,
}

impl<'a> SearchRequest<'a> {
    /// Reads a body of a version.
    ///
    /// # Errors
    /// Why the request is refused.
    pub(super) fn read(version: u16, fields: &mut Fields<'a>) -> Result<Self> {
        let master = if version >= 0x118 { fields.i32()? } else { 0 };
        if master != 0 {
            return Err(RequestError::Master(master));
        }
        let count = if version >= 0x10D { fields.i32()? } else { 1 };
        if !(1..=MAX_QUERIES).contains(&count) {
            return Err(RequestError::QueryCount(count));
        }
        let queries = (0..count).map(|_| Query::read(version, fields)).collect::<Result<_>>()?;
        Ok(Self { version, queries })
    }
}

impl<'a> Query<'a> {
    fn read(version: u16, fields: &mut Fields<'a>) -> Result<Self> {
        let flags = if version >= 0x11B { fields.u32()? } else { 0 };
        if flags & !KNOWN_FLAGS != 0 {
            return Err(RequestError::QueryFlags { unknown: flags & !KNOWN_FLAGS });
        }
        let mut query = Self {
            is_idf_global: flags & GLOBAL_IDF != 0,
            is_idf_plain: flags & PLAIN_IDF != 0,
            is_idf_undivided: version == SAYS_DIVIDED && flags & DIVIDED_IDF == 0,
            ..Self::default()
        };
        let mut limits = Limits { max_matches: DEFAULT_MAX_MATCHES, ..Limits::default() };
        query.read_what(version, fields, &mut limits)?;
        query.read_group(version, fields, &mut limits)?;
        query.read_weights(version, fields)?;
        if flags & HAS_PREDICTED_TIME != 0 {
            let _milliseconds = fields.u32()?;
        }
        if version >= 0x11D {
            let (order, offset, limit) = (fields.text()?, fields.u32()?, fields.u32()?);
            query.outer = fields.flag()?.then_some(Outer { order, offset, limit });
        }
        limits.check(query.outer.is_some())?;
        query.offset = limits.offset.unsigned_abs();
        query.limit = limits.limit.unsigned_abs();
        query.max_matches = limits.max_matches.unsigned_abs();
        query.cutoff = limits.cutoff.unsigned_abs();
        Ok(query)
    }

    /// Reads the fields from the offset to the filters.
    fn read_what(
        &mut self,
        version: u16,
        fields: &mut Fields<'a>,
        limits: &mut Limits,
    ) -> Result<()> {
        limits.offset = fields.i32()?;
        limits.limit = fields.i32()?;
        self.mode = MatchMode::numbered(fields.i32()?)?;
        if version >= 0x110 {
            self.ranker = Ranker::read(fields)?;
        }
        self.sort = SortMode::numbered(fields.i32()?)?;
        if version >= 0x102 {
            self.sort_clause = fields.text()?;
        }
        self.text = fields.text()?;
        let count = fields.u32()?;
        if count > MAX_FIELDS {
            return Err(RequestError::WeightCount(count));
        }
        self.weights = fields.entries(count, 4, Fields::u32)?;
        self.indexes = fields.text()?;
        if version >= 0x108 && fields.flag()? {
            (self.min_id, self.max_id) = (fields.u64()?, fields.u64()?);
        } else {
            (self.min_id, self.max_id) = (fields.u32()?.into(), fields.u32()?.into());
            // Clients of old say so that they mean any.
            if version < 0x108 && self.max_id == u64::from(u32::MAX) {
                self.max_id = 0;
            }
        }
        if version >= 0x102 {
            self.filters = filter::read(version, fields)?;
        }
        Ok(())
    }

    /// Reads the fields from the grouping to the anchor.
    fn read_group(
        &mut self,
        version: u16,
        fields: &mut Fields<'a>,
        limits: &mut Limits,
    ) -> Result<()> {
        if version >= 0x103 {
            self.group.function = fields.u32()?;
            self.group.column = fields.text()?;
        }
        if version >= 0x104 {
            limits.max_matches = fields.i32()?;
        }
        if version >= 0x107 {
            self.group.order = fields.text()?;
        } else if version >= 0x105 && !fields.flag()? {
            self.group.order = self.order_of_rows();
        }
        if version >= 0x109 {
            limits.cutoff = fields.i32()?;
        }
        if version >= 0x10A {
            (limits.retries, limits.retry_delay_ms) = (fields.i32()?, fields.i32()?);
        }
        if version >= 0x10B {
            self.group.distinct = fields.text()?;
        }
        if version >= 0x10E && fields.flag()? {
            self.anchor = Some(Anchor {
                latitude_column: fields.text()?,
                longitude_column: fields.text()?,
                latitude: fields.f32()?,
                longitude: fields.f32()?,
            });
        }
        Ok(())
    }

    /// The sort order of rows as an order of groups, for old clients that order groups so.
    fn order_of_rows(&self) -> Text<'a> {
        match self.sort {
            SortMode::AttributeDescending => format!("{} desc", self.sort_clause).into(),
            SortMode::AttributeAscending => format!("{} asc", self.sort_clause).into(),
            SortMode::Extended => self.sort_clause.clone(),
            SortMode::Relevance | SortMode::TimeSegments | SortMode::Expression => {
                "@weight desc".into()
            }
        }
    }

    /// Reads the fields from the index weights to the select list.
    fn read_weights(&mut self, version: u16, fields: &mut Fields<'a>) -> Result<()> {
        let weight = |fields: &mut Fields<'a>| Ok((fields.text()?, fields.u32()?));
        if version >= 0x10F {
            self.index_weights = fields.list("index weights", 8, weight)?;
        }
        if version >= 0x111 {
            self.max_query_ms = fields.u32()?;
        }
        if version >= 0x112 {
            self.field_weights = fields.list("field weights", 8, weight)?;
        }
        if version >= 0x113 {
            self.comment = fields.text()?;
        }
        if version >= 0x115 {
            self.overrides = fields.list("overrides", 12, read_override)?;
        }
        if version >= 0x116 {
            self.select = fields.text()?;
        }
        Ok(())
    }
}

/// Reads the override of an attribute's values and returns the attribute's name.
fn read_override<'a>(fields: &mut Fields<'a>) -> Result<Text<'a>> {
    const BIGINT: u32 = 6;
    let (name, kind, count) = (fields.text()?, fields.u32()?, fields.u32()?);
    for _ in 0..count {
        fields.u64()?;
        if kind == BIGINT { fields.u64().map(drop)? } else { fields.u32().map(drop)? }
    }
    Ok(name)
}

/// The numeric fields that have limits, as they were sent.
#[derive(Default)]
struct Limits {
    offset: i32,
    limit: i32,
    max_matches: i32,
    cutoff: i32,
    retries: i32,
    retry_delay_ms: i32,
}

impl Limits {
    /// Checks the limits in the same order as `searchd`.
    fn check(&self, has_outer: bool) -> Result<()> {
        let Self { offset, limit, max_matches, cutoff, retries, retry_delay_ms } = *self;
        if max_matches < 1 {
            return Err(RequestError::MaxMatches);
        }
        if !(0..max_matches).contains(&offset) {
            return Err(RequestError::Offset { offset, max_matches });
        }
        if limit < 0 {
            return Err(RequestError::Limit(limit));
        }
        if cutoff < 0 {
            return Err(RequestError::Cutoff(cutoff));
        }
        if !(0..=MAX_RETRIES).contains(&retries) {
            return Err(RequestError::RetryCount(retries));
        }
        if !(0..=MAX_RETRY_DELAY_MS).contains(&retry_delay_ms) {
            return Err(RequestError::RetryDelay(retry_delay_ms));
        }
        if offset > 0 && has_outer {
            return Err(RequestError::InnerOffset(offset));
        }
        Ok(())
    }
}
