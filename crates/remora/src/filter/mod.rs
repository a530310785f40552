//! Conditions on the columns of a table, or on the values inside documents.

mod columns;
mod cost;
mod dates;
mod documents;
mod elements;
mod parse;
mod path_test;
mod paths;
mod rows;
mod several;

use remora_engine::Value;
use serde_json::Value as Json;

pub(crate) use columns::of_table;
pub(crate) use documents::{first_at, matches, order};
pub(crate) use elements::check_depth;
pub(crate) use path_test::equal_value;
pub(crate) use paths::{PathFilter, ReadyPath, constrains, path_filter};
pub(crate) use rows::of_rows;
pub use several::Paths;

use crate::{IntoValue, Result};

/// A condition. It is made by [`field`], or parsed from a text wherever [`IntoFilter`] is accepted:
///
/// ```text
/// filter    := and ("OR" and)*
/// and       := part ("AND" part)*
/// part      := "NOT" part | "(" filter ")" | field test | fields ["NOT"] "MATCHES" "'" text "'"
///            | field "HAS" "(" filter ")"
/// fields    := field | "(" field ("," field)* ")"
/// test      := ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") literal | ["NOT"] "IN" "(" literal ("," literal)* ")"
///            | ["NOT"] "BETWEEN" literal "AND" literal | ["NOT"] "BEGINS" "'" text "'"
///            | "IS" ["NOT"] "NULL" | "EXISTS"
/// field     := name ("." name)*                name := letters, digits, _ or any text in `…` or "…"
/// literal   := number | "'" text "'" | "true" | "false"        ('' is ' within a text)
///            | "DATE" "'" date "'" | "TIMESTAMP" "'" date and time, with Z or an offset or neither "'"
/// ```
///
/// A field of a table is a column, or a path into a column of JSON documents that begins with the column's name
/// (`doc.author.name`). A field of a document is a path; a number in it is an array
/// index. If a path leads through an array, a test holds if it holds for one of the elements.
/// Values are compared by type: 5 does not equal '5'. Missing values and values of another type
/// satisfy only `!=` and NOT. `IS NULL` tests for NULL in a column and for null in a document; a
/// missing value is found by `NOT … EXISTS`. `MATCHES` holds if one of the texts at one of the
/// paths, or an element of an array there, contains the text, ignoring case: NFKC and case folding
/// are applied to both. An empty text is contained in none. Tables are searched with
/// [`crate::Table::search`] instead.
///
/// `items HAS (sku = 'x' AND qty > 3)` holds if one and the same element of the array at `items`, or the value there
/// if it is no array, satisfies the whole filter in parentheses, whose paths begin at the element. Elements that are
/// arrays themselves are passed over. It nests at most 16 deep.
///
/// A date, or a date and time, compares with the texts of documents that are one in the form of ISO 8601
/// (`2024-05-01`, `2024-05-01T12:30:00Z`, `2024-05-01 14:30:00.5+02:00`), by instants: a date is its midnight, and what
/// has no offset is UTC. Other texts are of another type. A literal that is a text compares by bytes, with dates too.
///
/// ```
/// use remora::{Filter, field};
///
/// let one = Filter::parse("author.name = 'Ann' AND (stars >= 4 OR NOT tags IN ('old'))")?;
/// let same = field("author.name").equals("Ann")
///     & (field("stars").at_least(4) | !field("tags").is_in(["old"]));
/// assert_eq!(one, same);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub(crate) Condition);

/// The tree of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    Compare(Field, Test, Value),
    In(Field, Vec<Value>),
    Between(Field, Value, Value),
    Begins(Field, String),
    Exists(Field),
    IsFilled(Field),
    IsNull(Field),
    Matches(Vec<Field>, String),
    /// One element of the array at the path satisfies the condition.
    Has(Field, Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The column, or the path into documents, whose value a condition tests.
///
/// ```
/// use remora::field;
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// books.insert(&json!({"author": {"name": "Ann"}, "year": 2015}))?;
/// let name = field("author.name");
/// assert_eq!(name.names(), ["author", "name"]);
/// let filter = name.equals("Ann") & !field("year").at_least(2016);
/// assert_eq!(books.find(filter).count()?, 1);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The names from the outside in.
    pub(crate) parts: Vec<String>,
}

/// The column of this name, or the path whose names are separated by points: `author.name`, `tags.0`.
///
/// ```
/// assert_eq!(remora::field("author.name").to_string(), "author.name");
/// ```
pub fn field(path: &str) -> Field {
    Field { parts: path.split('.').map(str::to_owned).collect() }
}

/// The path of these names, which may contain points.
///
/// ```
/// use remora::path;
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let pages = db.collection("pages")?;
/// pages.insert(&json!({"links": {"example.com": 3}}))?;
/// assert_eq!(pages.find(path(["links", "example.com"]).equals(3)).count()?, 1);
/// # Ok::<(), remora::Error>(())
/// ```
pub fn path<'p>(names: impl IntoIterator<Item = &'p str>) -> Field {
    Field { parts: names.into_iter().map(str::to_owned).collect() }
}

impl From<&str> for Field {
    fn from(path: &str) -> Self {
        field(path)
    }
}

/// The names with points between them.
impl std::fmt::Display for Field {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.shown())
    }
}

impl Field {
    /// The names from the outside in.
    pub fn names(&self) -> &[String] {
        &self.parts
    }

    /// The condition `=`.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("author.name").equals("Ann"), Filter::parse("author.name = 'Ann'")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn equals(self, value: impl IntoValue) -> Filter {
        self.compare(Test::Equal, value)
    }

    /// The condition `!=`. It also holds if the value is missing.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("state").differs_from("paid"), Filter::parse("state != 'paid'")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn differs_from(self, value: impl IntoValue) -> Filter {
        self.compare(Test::NotEqual, value)
    }

    /// The condition `<`. It does not hold if the value is missing or of another type, nor do `<=`, `>` and `>=`.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("year").less_than(2000), Filter::parse("year < 2000")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn less_than(self, value: impl IntoValue) -> Filter {
        self.compare(Test::Less, value)
    }

    /// The condition `<=`.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("year").at_most(1999), Filter::parse("year <= 1999")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn at_most(self, value: impl IntoValue) -> Filter {
        self.compare(Test::LessOrEqual, value)
    }

    /// The condition `>`.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("price").greater_than(9.5), Filter::parse("price > 9.5")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn greater_than(self, value: impl IntoValue) -> Filter {
        self.compare(Test::Greater, value)
    }

    /// The condition `>=`.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("stars").at_least(4), Filter::parse("stars >= 4")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn at_least(self, value: impl IntoValue) -> Filter {
        self.compare(Test::GreaterOrEqual, value)
    }

    /// The value is between `from` and `to`, both included.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("year").between(1990, 1999), Filter::parse("year BETWEEN 1990 AND 1999")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn between(self, from: impl IntoValue, to: impl IntoValue) -> Filter {
        Filter(Condition::Between(self, literal(from), literal(to)))
    }

    /// The value equals one of these.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("tags").is_in(["sea", "ice"]), Filter::parse("tags IN ('sea', 'ice')")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn is_in<V: IntoValue>(self, values: impl IntoIterator<Item = V>) -> Filter {
        let values = values.into_iter().map(literal).collect();
        Filter(Condition::In(self, values))
    }

    /// The value is a text that begins with these bytes.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("sku").begins_with("A-"), Filter::parse("sku BEGINS 'A-'")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn begins_with(self, text: &str) -> Filter {
        Filter(Condition::Begins(self, text.to_owned()))
    }

    /// The value exists: the column is not NULL, or the path leads to a value of the document, which may be null.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(!field("answered").exists(), Filter::parse("NOT answered EXISTS")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn exists(self) -> Filter {
        Filter(Condition::Exists(self))
    }

    /// The column is NULL, or the path leads to a null of the document.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("answered").is_null(), Filter::parse("answered IS NULL")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn is_null(self) -> Filter {
        Filter(Condition::IsNull(self))
    }

    /// The column is not NULL, or the path leads to a value of the document that is neither null nor an array without
    /// any but nulls.
    ///
    /// ```
    /// use remora::field;
    /// use serde_json::json;
    ///
    /// let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// books.insert_as(1, &json!({"tags": ["old"]}))?;
    /// books.insert_as(2, &json!({"tags": []}))?;
    /// assert_eq!(books.find(field("tags").is_filled()).ids()?, [1]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn is_filled(self) -> Filter {
        Filter(Condition::IsFilled(self))
    }

    /// One and the same element of the array at the path, or the value there if it is no array, satisfies this
    /// filter, whose paths begin at the element.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// let one = field("items").has(field("sku").equals("x") & field("qty").greater_than(3));
    /// assert_eq!(one, Filter::parse("items HAS (sku = 'x' AND qty > 3)")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn has(self, element: Filter) -> Filter {
        Filter(Condition::Has(self, Box::new(element.0)))
    }

    /// One of the texts at the path contains this text, as [`Filter::matches`] defines it.
    ///
    /// ```
    /// use remora::{Filter, field};
    ///
    /// assert_eq!(field("title").matches("reef"), Filter::parse("title MATCHES 'reef'")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn matches(self, text: &str) -> Filter {
        Filter::matches(self, text)
    }

    fn compare(self, test: Test, value: impl IntoValue) -> Filter {
        Filter(Condition::Compare(self, test, literal(value)))
    }

    /// The names, separated by points, for messages.
    pub(crate) fn shown(&self) -> String {
        self.parts.join(".")
    }
}

/// The literal of a comparison. A JSON scalar becomes the corresponding value: a number, a text, a
/// boolean or NULL.
fn literal(value: impl IntoValue) -> Value {
    let value = value.into_value();
    let Value::Json(text) = &value else { return value };
    match serde_json::from_str(text) {
        Ok(Json::Null) => Value::Null,
        Ok(Json::Bool(truth)) => Value::Bool(truth),
        Ok(Json::String(text)) => Value::Text(text.into()),
        Ok(Json::Number(number)) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => Value::Int(number),
            (_, Some(number), _) => Value::Uint(number),
            (.., Some(number)) => Value::Float(number),
            _ => value,
        },
        _ => value,
    }
}

impl Filter {
    /// Reads a filter. Cost: that of reading the text.
    ///
    /// ```
    /// let filter = remora::Filter::parse("stars >= 4 AND NOT tags IN ('old', 'spam')")?;
    /// let books = remora::Database::in_memory()?.collection("books")?;
    /// assert_eq!(books.find(filter).count()?, 0);
    /// let wrong = remora::Filter::parse("stars >= AND");
    /// assert!(matches!(wrong, Err(remora::Error::Request(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Request`] says what is wrong, and where: the number of the character.
    pub fn parse(text: &str) -> Result<Self> {
        parse::parse(text).map(Self)
    }

    /// A text at one of these paths of a document, or a text in an array there, contains this text; the case of letters
    /// does not matter. [`crate::Collection::index_text`] builds an index that answers this.
    ///
    /// ```
    /// let books = remora::Database::in_memory()?.collection("books")?;
    /// books.insert_json(r#"{"title": "Night", "chapters": [{"text": "At the Coral Reef"}]}"#)?;
    /// let anywhere = remora::Filter::matches(["title", "chapters.text"], "coral reef");
    /// assert_eq!(books.find(anywhere).count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn matches(paths: impl Into<Paths>, text: &str) -> Self {
        Self(Condition::Matches(paths.into().into_fields(), text.to_owned()))
    }

    /// Converts the condition to the engine's, on the columns of this table, for programs that have opened the engine
    /// themselves ([`crate::Database::over`]). Cost: that of reading the filter; no row is read.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let engine = remora_engine::Database::open(directory.path(), remora_engine::Options::default())?;
    /// remora::Database::over(engine.clone()).create_table("birds", |t| t.int("id").key())?;
    /// let schema = engine.schema("birds")?;
    /// let of_columns = remora::field("id").at_least(7).on_columns(&schema)?;
    /// assert!(remora::field("id.name").equals("Heron").on_columns(&schema).is_err()); // A path.
    /// # drop(of_columns);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Request`] if a column is compared with a value that it cannot hold, or a field is a path.
    pub fn on_columns(&self, schema: &remora_engine::Schema) -> Result<remora_engine::Filter> {
        of_table(&self.0, schema)
    }
}

impl std::ops::BitAnd for Filter {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        // A chain of any length becomes one flat list instead of a deep tree.
        let mut parts = match self.0 {
            Condition::And(parts) => parts,
            first => vec![first],
        };
        match other.0 {
            Condition::And(others) => parts.extend(others),
            other => parts.push(other),
        }
        Self(Condition::And(parts))
    }
}

impl std::ops::BitOr for Filter {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        let mut parts = match self.0 {
            Condition::Or(parts) => parts,
            first => vec![first],
        };
        match other.0 {
            Condition::Or(others) => parts.extend(others),
            other => parts.push(other),
        }
        Self(Condition::Or(parts))
    }
}

impl std::ops::Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self(Condition::Not(Box::new(self.0)))
    }
}

/// A type that can be converted to a filter: a filter, or its text.
///
/// ```
/// use remora::{Collection, IntoFilter, field};
///
/// fn count(of: &Collection, filter: impl IntoFilter) -> remora::Result<u64> {
///     of.find(filter).count()
/// }
/// let votes = remora::Database::in_memory()?.collection("votes")?;
/// votes.insert_json(r#"{"for": 7}"#)?;
/// assert_eq!((count(&votes, "for = 7")?, count(&votes, field("for").less_than(7))?), (1, 0));
/// # Ok::<(), remora::Error>(())
/// ```
pub trait IntoFilter {
    /// Converts it to a filter. Cost: that of [`Filter::parse`] for a text.
    ///
    /// ```
    /// use remora::{IntoFilter, field};
    ///
    /// assert_eq!("year > 1990".into_filter()?, field("year").greater_than(1990));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Filter::parse`].
    fn into_filter(self) -> Result<Filter>;
}

impl IntoFilter for Filter {
    fn into_filter(self) -> Result<Filter> {
        Ok(self)
    }
}

impl IntoFilter for &str {
    fn into_filter(self) -> Result<Filter> {
        Filter::parse(self)
    }
}

impl IntoFilter for &String {
    fn into_filter(self) -> Result<Filter> {
        Filter::parse(self)
    }
}
