//! SphinxAPI, the binary protocol of Sphinx 2.2.11, the server's side, without sockets.
//!
//! A connection begins with a greeting from either side; then each request has a head (`frame`) and
//! a body, which `request` reads into a plain struct by its command: `search`, `excerpt`, `update`,
//! `keywords`, or a small one. `statement` makes SQL of it, and `reply` writes what SQL answered.
//! Every number is big-endian, and every text is its length in 4 bytes and then its bytes.

mod encode;
mod error;
mod excerpt;
mod frame;
mod keywords;
mod reply;
mod request;
mod search;
pub mod statement;
mod update;

pub use error::RequestError;
pub use excerpt::ExcerptRequest;
pub use frame::{
    Command, GREETING, GREETING_BYTES, HEAD_BYTES, MAX_REQUEST_BYTES, RequestHead, put_error,
    put_retry,
};
pub use keywords::{Keyword, KeywordsRequest};
pub use reply::{
    Answer, Attribute, AttributeKind, Found, Match, Value, Word, put_excerpts, put_flushed,
    put_keywords, put_ping, put_search, put_status, put_updated,
};
pub use request::Request;
pub use search::{
    Anchor, Filter, FilterTest, Group, MatchMode, Outer, Query, Ranker, SearchRequest, SortMode,
};
pub use update::{UpdateRequest, UpdatedAttribute, UpdatedRow, UpdatedValue};
