//! The query language: parses a query into a tree of words.
//!
//! ```text
//! query  = ["@@relaxed"] , and ;                    and  = order , { order } ;
//! order  = neg , { ("<<" | "NEAR/" int) , neg } ;   neg  = alt | [limit] , ("-" | "!") , alt ;
//! alt    = item , { ("|" | "MAYBE") , item } ;      item = [limit] , atom ;
//! atom   = keyword | "(" and ")" | ["="] quoted | unit | atom , "NOTNEAR/" int , atom ;
//! quoted = '"' { keyword | "*" | group } '"' [ "~" int | "/" int | "/" fraction ] ;
//! group  = "(" keyword { "|" keyword } ")" ;
//! unit   = part { "SENTENCE" part } | part { "PARAGRAPH" part } ;
//! keyword= { "=" } ["^"] word ["$"] ["^" number] ;
//! limit  = "@" ( "*" | ["!"] name | ["!"] "(" name { "," name } ")" ) [ "[" int "]" ]
//!        | ( "ZONE:" | "ZONESPAN:" ) ( name | "(" name { "," name } ")" ) ;
//! ```
//!
//! The reference is Sphinx 2.2.11; errors and warnings are the same, word for word. NOTNEAR and groups are Manticore's.

mod expand;
mod fields;
mod lexer;
mod negation;
mod options;
mod parser;
mod raw;
mod tree;
mod wildcard;

pub use options::QueryOptions;
pub(crate) use parser::parse_written;
pub use parser::{Parsed, parse, parse_with};
pub use tree::{FieldMask, Limit, Node, Quoted, QuotedKind, TextUnit, Word, Zones};
pub use wildcard::Wildcard;

/// The deepest nesting of a query's parentheses.
pub const MAX_DEPTH: usize = 256;
/// The most words of a query.
pub const MAX_WORDS: usize = 4096;
/// The most names of zones in a query.
pub const MAX_ZONES: usize = 256;
/// The greatest position of a word in a query; stars and stop words count.
pub const MAX_QUERY_POSITION: u32 = 65_535;
