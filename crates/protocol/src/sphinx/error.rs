//! Why a request is refused as a whole, in the words of `searchd` where it has any.

use thiserror::Error;

/// A request that is not answered. The connection goes on unless [`RequestError::is_final`].
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RequestError {
    /// A command that there is not, or a body that is too long: what follows cannot be told apart.
    #[error("invalid command (code={code}, len={length})")]
    InvalidCommand {
        /// The command's number.
        code: u16,
        /// The body's length.
        length: i32,
    },
    /// A command of Sphinx's that is not answered here.
    #[error("command '{0}' is not answered here: use the SQL port")]
    UnansweredCommand(&'static str),
    /// A version with another first part.
    #[error(
        "major command version mismatch (expected v.{}.x, got v.{}.{})",
        ours >> 8, client >> 8, client & 0xFF
    )]
    MajorVersion {
        /// The client's version of the command.
        client: u16,
        /// The newest that is answered.
        ours: u16,
    },
    /// A version that is newer than ours.
    #[error(
        "client version is higher than daemon version (client is v.{}.{}, daemon is v.{}.{})",
        client >> 8, client & 0xFF, ours >> 8, ours & 0xFF
    )]
    NewerVersion {
        /// The client's version of the command.
        client: u16,
        /// The newest that is answered.
        ours: u16,
    },
    /// A search of another server, of which this one would be an agent.
    #[error("searches of a distributed index's master are not answered (master version {0})")]
    Master(i32),
    /// No queries, or too many.
    #[error("bad multi-query count {0} (must be in 1..32 range)")]
    QueryCount(i32),
    /// Flags of a query that `searchd` 2.2.11 does not have; what follows them may be something else.
    #[error("unknown flags of a query ({unknown:#x}): those from 1 to 0x100 are known")]
    QueryFlags {
        /// The bits that are not known.
        unknown: u32,
    },
    /// The body ends too soon.
    #[error("invalid or truncated request")]
    Truncated,
    /// A list with too many entries.
    #[error("too many {name} in the request (count={count}, max={most})")]
    TooMany {
        /// What is listed.
        name: &'static str,
        /// How many there are.
        count: u32,
        /// How many there may be.
        most: u32,
    },
    /// Too many weights by the order of fields.
    #[error("invalid weight count {0} (should be in 0..256 range)")]
    WeightCount(u32),
    /// Too many filters.
    #[error("too much attribute filters (req={0}, max=256)")]
    FilterCount(i32),
    /// Too many values of a filter.
    #[error("invalid attribute '{name}'({filter}) set length {count} (should be in 0..4096 range)")]
    SetLength {
        /// The attribute.
        name: String,
        /// The filter's place.
        filter: usize,
        /// How many values there are.
        count: i32,
    },
    /// A filter of a kind that there is not.
    #[error("unknown filter type (type-id={0})")]
    FilterType(i32),
    /// A mode of matching that there is not.
    #[error("invalid match mode {0}")]
    MatchMode(i32),
    /// A ranker that there is not.
    #[error("invalid ranking mode {0}")]
    RankingMode(i32),
    /// A mode of sorting that there is not.
    #[error("invalid sorting mode {0}")]
    SortMode(i32),
    /// No rows are to be kept.
    #[error("max_matches can not be less than one")]
    MaxMatches,
    /// The first row asked for is not among those that are kept.
    #[error("offset out of bounds (offset={offset}, max_matches={max_matches})")]
    Offset {
        /// Rows to pass over.
        offset: i32,
        /// Rows that are kept.
        max_matches: i32,
    },
    /// A negative limit.
    #[error("limit out of bounds (limit={0})")]
    Limit(i32),
    /// A negative cutoff.
    #[error("cutoff out of bounds (cutoff={0})")]
    Cutoff(i32),
    /// Too many retries.
    #[error("retry count out of bounds (count={0})")]
    RetryCount(i32),
    /// Too long between retries.
    #[error("retry delay out of bounds (delay={0})")]
    RetryDelay(i32),
    /// Rows are passed over within what an outer order sorts.
    #[error("inner offset must be 0 when using outer order by (offset={0})")]
    InnerOffset(i32),
    /// An excerpt's setting for markup that there is not.
    #[error("unknown html_strip_mode={0}")]
    StripMode(String),
    /// No texts, or too many.
    #[error("invalid entries count {0}")]
    EntryCount(i32),
}

impl RequestError {
    /// Whether what follows on the connection cannot be told apart, so that it has to end.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::InvalidCommand { .. })
    }
}
