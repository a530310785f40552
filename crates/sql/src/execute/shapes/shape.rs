//! The shapes of SELECT that are answered without a planner.
//!
//! ```text
//! statement := select ("UNION" "ALL"? select)*     each of them may stand in parentheses
//! select    := "SELECT" "DISTINCT"? item ("," item)* "FROM" (table | joined) ("WHERE" condition)?
//!              ("GROUP" "BY" column ("," column)*)? ("ORDER" "BY" order ("," order)*)? ("LIMIT" …)?
//! joined    := json "JOIN" table "ON" column "=" column | table "JOIN" json "ON" column "=" column
//! json      := "JSON_TABLE" "(" literal "," literal "COLUMNS" "(" name integer "PATH" literal "))"
//!              "AS"? name
//! item      := "*" | table ".*" | (column | "COUNT" "(" ("*" | column) ")" | ("MIN" | "MAX") "(" column ")"
//!              | match | member) ("AS"? name)?
//! member    := "JSON_EXTRACT" "(" column "," literal ")" | "JSON_UNQUOTE" "(" "JSON_EXTRACT" … ")"
//!              | column ("->" | "->>") literal             of one row by its key
//! condition := of AND, OR, NOT, parentheses, and comparisons of a column with literals
//! match     := "MATCH" "(" column, … ")" "AGAINST" "(" literal mode? ")"
//! keywords  := "MATCH" "(" literal ("," table)? ")"        with OPTION at the end of the SELECT
//! ```
//! A statement outside this grammar has no shape and takes the general path. The grammar is that of syntax trees
//! ([`super::of_tree`]): the parser of all statements reads the text.

/// The number of a group of literals. A group is one literal or a list.
pub(super) type LiteralGroup = usize;

/// A statement of a known shape.
#[derive(Debug)]
pub(super) struct Shape {
    /// The SELECT, or the first one of a UNION.
    pub select: Select,
    /// The repetitions of the SELECT in a UNION.
    pub branches: Repeated,
    /// Whether duplicates are kept (UNION ALL).
    pub all: bool,
}

/// A repetition of the same text with other literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    /// The number of occurrences.
    pub times: usize,
    /// The number of literal groups in each occurrence.
    pub groups: usize,
}

/// One SELECT.
#[derive(Debug)]
pub(super) struct Select {
    pub items: Vec<ShapeItem>,
    pub database: Option<String>,
    pub table: String,
    pub alias: Option<String>,
    /// The JSON_TABLE that it is joined with.
    pub joined: Option<JsonKeys>,
    pub condition: Option<ShapeCondition>,
    /// The columns of GROUP BY, or of DISTINCT.
    pub groups: Vec<ColumnName>,
    pub order: Vec<(OrderBy, bool)>,
    pub limit: Option<LiteralGroup>,
    pub offset: Option<LiteralGroup>,
}

/// The names and values of a keyword query's OPTION clause.
pub(super) type MatchOptions = Vec<(String, MatchOption)>;

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MatchOption {
    Word(String),
    Literal(LiteralGroup),
    /// `(title=10, body=3)`.
    List(Vec<(String, LiteralGroup)>),
    /// `expr('…')`.
    Call(String, LiteralGroup),
}

/// MATCH('query').
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Keywords {
    pub text: LiteralGroup,
    /// The table that it names.
    pub table: Option<String>,
    pub options: MatchOptions,
}

/// JSON_TABLE with one integer column, joined with a column of the table.
#[derive(Debug)]
pub(super) struct JsonKeys {
    /// The literal with the JSON array.
    pub array: LiteralGroup,
    /// The path to its members: `$[*]`.
    pub members: LiteralGroup,
    /// The path within a member: `$`.
    pub member: LiteralGroup,
    /// The least and greatest value of the column's type.
    pub range: (i128, i128),
    /// Its alias and the name of its column.
    pub alias: String,
    pub column: String,
    /// The table's column that it is joined with.
    pub key: ColumnName,
}

/// What is selected.
#[derive(Debug, PartialEq)]
pub(super) enum ShapeItem {
    /// `*`, or `table.*`.
    Every(Option<String>),
    /// A value and the name of its result column.
    One(Value, String),
}

/// A value of a row, or an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Column(ColumnName),
    CountRows,
    CountValues(ColumnName),
    Least(ColumnName),
    Greatest(ColumnName),
    Score(Match),
    /// WEIGHT().
    Weight,
    /// What a path leads to in the document of a column: the document there, or its text.
    Member {
        column: ColumnName,
        path: LiteralGroup,
        is_text: bool,
    },
}

/// A column name, qualified or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnName {
    pub table: Option<String>,
    pub name: String,
    /// The position of a hidden column that has no name in SQL.
    pub hidden: Option<usize>,
}

/// What rows are ordered by.
#[derive(Debug, PartialEq)]
pub(super) enum OrderBy {
    Value(Value),
    /// The number of a select item, from 1.
    Item(usize),
}

/// MATCH … AGAINST.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Match {
    pub columns: Vec<ColumnName>,
    pub text: LiteralGroup,
    pub boolean: bool,
}

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A WHERE condition.
#[derive(Debug, PartialEq)]
pub(super) enum ShapeCondition {
    Compare(ColumnName, Comparison, LiteralGroup),
    /// A tuple of columns is in a list.
    In(Vec<ColumnName>, LiteralGroup),
    Between(ColumnName, LiteralGroup, LiteralGroup),
    IsNull(ColumnName),
    Like(ColumnName, LiteralGroup),
    /// LIKE with a prefix pattern.
    Begins(ColumnName, LiteralGroup),
    /// INSTR(column, text) > 0 and its variants, with the number it is compared with.
    Holds(ColumnName, LiteralGroup, LiteralGroup),
    Match(Match),
    Keywords(Keywords),
    And(Vec<ShapeCondition>),
    Or(Vec<ShapeCondition>),
    /// An OR of conditions that differ only in their literals.
    Again(Box<ShapeCondition>, Repeated),
    Not(Box<ShapeCondition>),
}

impl ShapeCondition {
    /// The keyword query among conditions that all hold.
    pub fn keywords(&self) -> Option<&Keywords> {
        match self {
            Self::Keywords(keywords) => Some(keywords),
            Self::And(parts) => parts.iter().find_map(Self::keywords),
            _ => None,
        }
    }
}

impl Select {
    /// Whether the SELECT consists of items, a table and a condition only.
    pub fn is_plain(&self) -> bool {
        let limited = self.limit.is_some() || self.offset.is_some();
        self.groups.is_empty()
            && self.joined.is_none()
            && self.order.is_empty()
            && !limited
            && self.condition.is_some()
    }
}

impl Comparison {
    /// Whether the comparison of two numbers is true.
    pub fn holds(self, left: i128, right: i128) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }

    /// The comparison with its operands exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}
