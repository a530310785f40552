//! The query language: parses a query into a tree of words.
//!
//! ```text
//! query  = ["@@relaxed"] , and ;                    and  = order , { order } ;
//! order  = neg , { ("<<" | "NEAR/" int) , neg } ;   neg  = alt | [limit] , ("-" | "!") , alt ;
//! alt    = item , { ("|" | "MAYBE") , item } ;      item = [limit] , atom ;
//! atom   = keyword | "(" and ")" | ["="] quoted | unit ;
//! quoted = '"' { keyword | "*" } '"' [ "~" int | "/" int | "/" fraction ] ;
//! unit   = part { "SENTENCE" part } | part { "PARAGRAPH" part } ;
//! keyword= { "=" } ["^"] word ["$"] ["^" number] ;
//! limit  = "@" ( "*" | ["!"] name | ["!"] "(" name { "," name } ")" ) [ "[" int "]" ] ;
//! ```
//!
//! The reference is Sphinx 2.2.11; errors and warnings are the same, word for word.

mod fields;
mod lexer;
mod negation;
mod parser;
mod raw;
mod tree;
mod wildcard;

pub use parser::{Parsed, parse};
pub use tree::{FieldMask, Limit, Node, Quoted, QuotedKind, Word};
pub use wildcard::Wildcard;

/// The deepest nesting of a query's parentheses.
pub const MAX_DEPTH: usize = 256;
/// The most words of a query.
pub const MAX_WORDS: usize = 4096;
/// The greatest position of a word in a query; stars and stop words count.
pub const MAX_QUERY_POSITION: u32 = 65_535;
