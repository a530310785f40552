//! The shapes of SELECT that are answered without a planner.
//!
//! ```text
//! statement := select ("UNION" "ALL"? select)*     each of them may stand in parentheses
//! select    := "SELECT" "DISTINCT"? item ("," item)* "FROM" (table | joined) ("WHERE" condition)?
//!              ("GROUP" "BY" column)? ("ORDER" "BY" order ("," order)*)? ("LIMIT" …)?
//! joined    := json "JOIN" table "ON" column "=" column | table "JOIN" json "ON" column "=" column
//! json      := "JSON_TABLE" "(" literal "," literal "COLUMNS" "(" name integer "PATH" literal "))"
//!              "AS"? name
//! item      := "*" | table ".*" | (column | "COUNT" "(" ("*" | column) ")" | ("MIN" | "MAX") "(" column ")"
//!              | match) ("AS"? name)?
//! condition := of AND, OR, NOT, parentheses, and comparisons of a column with literals
//! match     := "MATCH" "(" column, … ")" "AGAINST" "(" literal mode? ")"
//! keywords  := "MATCH" "(" literal ("," table)? ")"        with OPTION at the end of the SELECT
//! ```
//! A statement outside this grammar has no shape. That is not an error: it takes the general way.

/// A group of literals: one, or a list.
pub(super) type Group = usize;

/// A statement of a known shape.
#[derive(Debug)]
pub(super) struct Shape {
    /// The SELECT.
    pub select: Select,
    /// How many of it are united, each with its own literals.
    pub branches: Repeated,
    /// Whether rows that are equal are kept.
    pub all: bool,
}

/// The same again, with the groups of literals that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Repeated {
    /// How often it stands there.
    pub times: usize,
    /// How many groups of literals each has.
    pub groups: usize,
}

/// One SELECT.
#[derive(Debug)]
pub(super) struct Select {
    pub items: Vec<Item>,
    pub database: Option<String>,
    pub table: String,
    pub alias: Option<String>,
    /// The keys it is joined with.
    pub joined: Option<JsonKeys>,
    pub condition: Option<Condition>,
    pub group: Option<ColumnName>,
    pub order: Vec<(OrderBy, bool)>,
    pub limit: Option<Group>,
    pub offset: Option<Group>,
}

/// What OPTION says of a query by keywords: names and values.
pub(super) type MatchOptions = Vec<(String, MatchOption)>;

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MatchOption {
    Word(String),
    Literal(Group),
    /// `(title=10, body=3)`.
    List(Vec<(String, Group)>),
    /// `expr('…')`.
    Call(String, Group),
}

/// MATCH('query').
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Keywords {
    pub text: Group,
    /// The table that it names.
    pub table: Option<String>,
    pub options: MatchOptions,
}

/// JSON_TABLE of one column of integers, joined with a column of the table.
#[derive(Debug)]
pub(super) struct JsonKeys {
    /// The text of the array.
    pub array: Group,
    /// The path to its members: `$[*]`.
    pub members: Group,
    /// The path within a member: `$`.
    pub member: Group,
    /// The least and the greatest of the type.
    pub range: (i128, i128),
    /// What the statement calls it, and its column.
    pub alias: String,
    pub column: String,
    /// The column it is joined with.
    pub key: ColumnName,
}

/// What is selected.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// `*`, of a table if it is named.
    Every(Option<String>),
    /// Something with a name for the column.
    One(Value, String),
}

/// A value of a row, or of all rows.
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
}

/// A column, with the table if it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnName {
    pub table: Option<String>,
    pub name: String,
    /// The position of a hidden column that no name means.
    pub hidden: Option<usize>,
}

/// What rows are ordered by.
#[derive(Debug, PartialEq)]
pub(super) enum OrderBy {
    Value(Value),
    /// The number of an item, from 1.
    Item(usize),
}

/// MATCH … AGAINST.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Match {
    pub columns: Vec<ColumnName>,
    pub text: Group,
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

/// Which rows.
#[derive(Debug, PartialEq)]
pub(super) enum Condition {
    Compare(ColumnName, Comparison, Group),
    /// The columns are one of the tuples of a list.
    In(Vec<ColumnName>, Group),
    Between(ColumnName, Group, Group),
    IsNull(ColumnName),
    Like(ColumnName, Group),
    /// LIKE with a pattern that asks for a beginning.
    Begins(ColumnName, Group),
    /// INSTR(column, text) > 0 and its kin, with the number.
    Holds(ColumnName, Group, Group),
    Match(Match),
    Keywords(Keywords),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    /// An OR of the same.
    Again(Box<Condition>, Repeated),
    Not(Box<Condition>),
}

impl Select {
    /// Whether it is items, a table and a condition, and no more.
    pub fn is_plain(&self) -> bool {
        let limited = self.limit.is_some() || self.offset.is_some();
        self.group.is_none()
            && self.joined.is_none()
            && self.order.is_empty()
            && !limited
            && self.condition.is_some()
    }
}

impl Comparison {
    /// Whether it holds between two numbers.
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

    /// The same with its sides exchanged.
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
