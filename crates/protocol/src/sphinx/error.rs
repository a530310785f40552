//! The errors that refuse a whole request, with the messages of `searchd` where it has one.

use thiserror::Error;

/// The reason why a request is refused. The connection can be used further unless [`RequestError::is_final`].
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RequestError {
    /// The command does not exist, or its body is too long. Later requests on the connection cannot be found any more.
    #[error("invalid command (code={code}, len={length})")]
    InvalidCommand {
        /// The command's number.
        code: u16,
        /// The body's length.
        length: i32,
    },
    /// A command of Sphinx that this server does not support.
    #[error("command '{0}' is not answered here: use the SQL port")]
    UnansweredCommand(&'static str),
    /// The major version of the command differs from ours.
    #[error(
        "major command version mismatch (expected v.{}.x, got v.{}.{})",
        ours >> 8, client >> 8, client & 0xFF
    )]
    MajorVersion {
        /// The client's version of the command.
        client: u16,
        /// The newest version that this server answers.
        ours: u16,
    },
    /// The minor version of the command is newer than ours.
    #[error(
        "client version is higher than daemon version (client is v.{}.{}, daemon is v.{}.{})",
        client >> 8, client & 0xFF, ours >> 8, ours & 0xFF
    )]
    NewerVersion {
        /// The client's version of the command.
        client: u16,
        /// The newest version that this server answers.
        ours: u16,
    },
    /// The search comes from a master server, for which this server would be an agent.
    #[error("searches of a distributed index's master are not answered (master version {0})")]
    Master(i32),
    /// The number of queries is not positive, or too large.
    #[error("bad multi-query count {0} (must be in 1..32 range)")]
    QueryCount(i32),
    /// A query has flags that `searchd` 2.2.11 does not have. They may change the fields that follow.
    #[error("unknown flags of a query ({unknown:#x}): those from 1 to 0x100 are known")]
    QueryFlags {
        /// The unknown flags.
        unknown: u32,
    },
    /// The body ends before its last field.
    #[error("invalid or truncated request")]
    Truncated,
    /// A list has too many entries.
    #[error("too many {name} in the request (count={count}, max={most})")]
    TooMany {
        /// The name of the list.
        name: &'static str,
        /// The number of its entries.
        count: u32,
        /// The limit.
        most: u32,
    },
    /// There are too many field weights by position.
    #[error("invalid weight count {0} (should be in 0..256 range)")]
    WeightCount(u32),
    /// There are too many filters.
    #[error("too much attribute filters (req={0}, max=256)")]
    FilterCount(i32),
    /// A filter has too many values.
    #[error("invalid attribute '{name}'({filter}) set length {count} (should be in 0..4096 range)")]
    SetLength {
        /// The attribute of the filter.
        name: String,
        /// The number of the filter in the query.
        filter: usize,
        /// The number of values.
        count: i32,
    },
    /// The type of a filter does not exist.
    #[error("unknown filter type (type-id={0})")]
    FilterType(i32),
    /// The match mode does not exist.
    #[error("invalid match mode {0}")]
    MatchMode(i32),
    /// The ranker does not exist.
    #[error("invalid ranking mode {0}")]
    RankingMode(i32),
    /// The sort mode does not exist.
    #[error("invalid sorting mode {0}")]
    SortMode(i32),
    /// `max_matches` is not positive.
    #[error("max_matches can not be less than one")]
    MaxMatches,
    /// The offset is negative, or not below `max_matches`.
    #[error("offset out of bounds (offset={offset}, max_matches={max_matches})")]
    Offset {
        /// The offset.
        offset: i32,
        /// The value of `max_matches`.
        max_matches: i32,
    },
    /// The limit is negative.
    #[error("limit out of bounds (limit={0})")]
    Limit(i32),
    /// The cutoff is negative.
    #[error("cutoff out of bounds (cutoff={0})")]
    Cutoff(i32),
    /// The number of retries is negative or too large.
    #[error("retry count out of bounds (count={0})")]
    RetryCount(i32),
    /// The delay between retries is negative or too long.
    #[error("retry delay out of bounds (delay={0})")]
    RetryDelay(i32),
    /// A query with an outer order has an inner offset.
    #[error("inner offset must be 0 when using outer order by (offset={0})")]
    InnerOffset(i32),
    /// The strip mode of an excerpt does not exist.
    #[error("unknown html_strip_mode={0}")]
    StripMode(String),
    /// The number of texts is not positive, or too large.
    #[error("invalid entries count {0}")]
    EntryCount(i32),
}

impl RequestError {
    /// Whether the connection has to end, because later requests on it cannot be found any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::InvalidCommand { .. })
    }
}
