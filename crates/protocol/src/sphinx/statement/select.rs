//! Converts select lists.
//!
//! ```text
//! list := item ("," item)*
//! item := "*" | (aggregate | expression) [["AS"] name]
//! aggregate := ("SUM" | "AVG" | "MIN" | "MAX") "(" expression ")" | "COUNT" "(" "*" ")" | "GROUPBY" "(" ")"
//! ```

use super::{
    Column, Result,
    expression::expression,
    lex::{Token, Tokens},
    names::{Names, Term},
};

/// An item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name of the item.
    pub name: String,
    /// The value of the item.
    pub shown: Shown,
}

/// The value of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A value of the row.
    Value(Term),
    /// An aggregate function over the values of the rows of the group.
    Aggregate(&'static str, Term),
    /// The number of rows of the group.
    Count,
    /// The value that the rows of the group have in common.
    Group,
    /// The number of distinct values in the group.
    Distinct,
}

impl Shown {
    /// Whether it is a value of a group, not of a row.
    pub fn is_of_group(&self) -> bool {
        !matches!(self, Self::Value(_))
    }
}

/// The most items of a list, after each `*` was replaced by columns.
const MAX_ITEMS: usize = 4_096;
/// The most bytes of a list in SQL.
const MAX_BYTES: usize = 1 << 18;

/// Converts a select list, and adds its aliases to the names.
///
/// # Errors
/// A sentence for what is no list, for unknown names and for functions without an equivalent.
pub fn select(list: &str, names: &mut Names<'_>) -> Result<Vec<Item>> {
    let list = if list.trim().is_empty() { "*" } else { list };
    let mut tokens = Tokens::new(list)?;
    let mut items = Vec::new();
    let mut bytes = 0;
    loop {
        if tokens.take("*") {
            items.extend(names.shape.attributes().map(of_column));
        } else {
            let item = item(&mut tokens, names)?;
            if let Shown::Value(term) | Shown::Aggregate(_, term) = &item.shown {
                bytes += term.sql.len();
            }
            if let Shown::Value(term) = &item.shown {
                names.aliases.push((item.name.clone(), term.clone()));
            }
            items.push(item);
        }
        if items.len() > MAX_ITEMS || bytes > MAX_BYTES {
            return Err(names.shape.refuse("the select list is too long"));
        }
        if !tokens.take(",") {
            break;
        }
    }
    if tokens.is_end() { Ok(items) } else { Err(tokens.unexpected()) }
}

fn of_column(column: &Column) -> Item {
    let value = Term {
        is_column: true,
        is_nullable: column.is_nullable,
        ..Term::computed(column.value(), column.kind)
    };
    Item { name: column.name.to_lowercase(), shown: Shown::Value(value) }
}

fn item(tokens: &mut Tokens<'_>, names: &Names<'_>) -> Result<Item> {
    let place = tokens.place();
    let shown = match of_group(tokens, names)? {
        Some(shown) => shown,
        None => Shown::Value(expression(tokens, names)?),
    };
    let text = tokens.text_since(place).trim_matches('`').to_lowercase();
    let has_as = tokens.take_name("as");
    let name = match tokens.peek() {
        Some(Token::Name(alias)) => alias.to_lowercase(),
        _ if has_as => return Err(tokens.unexpected()),
        _ => return Ok(Item { name: text, shown }),
    };
    tokens.next();
    Ok(Item { name, shown })
}

/// A value of the group; `None` if the next item is a value of the row.
fn of_group(tokens: &mut Tokens<'_>, names: &Names<'_>) -> Result<Option<Shown>> {
    let Some(Token::Name(name)) = tokens.peek() else { return Ok(None) };
    let name = name.to_lowercase();
    if !tokens.is_call() {
        let shown = match &*name {
            "@count" => Shown::Count,
            "@group" | "@groupby" => Shown::Group,
            "@distinct" => Shown::Distinct,
            _ => return Ok(None),
        };
        tokens.next();
        return Ok(Some(shown));
    }
    let function = match &*name {
        "sum" => "SUM",
        "avg" => "AVG",
        "min" => "MIN",
        "max" => "MAX",
        "count" => return count(tokens, names).map(Some),
        "groupby" => {
            tokens.next();
            tokens.need("(")?;
            tokens.need(")")?;
            return Ok(Some(Shown::Group));
        }
        _ => return Ok(None),
    };
    let place = tokens.place();
    tokens.next();
    tokens.need("(")?;
    let first = expression(tokens, names)?.operand();
    if matches!(tokens.peek(), Some(Token::Sign(","))) {
        // MIN and MAX of two values are of a row.
        tokens.go_back(place);
        return Ok(None);
    }
    tokens.need(")")?;
    if first.kind.is_set() {
        return Err(names
            .shape
            .refuse(format!("can not aggregate the non-scalar attribute {}", first.sql)));
    }
    Ok(Some(Shown::Aggregate(function, first)))
}

fn count(tokens: &mut Tokens<'_>, names: &Names<'_>) -> Result<Shown> {
    tokens.next();
    tokens.need("(")?;
    if tokens.take_name("distinct") {
        let why = "count(distinct …) of a select list is not answered: name the column that is \
                   counted as the query's distinct";
        return Err(names.shape.refuse(why));
    }
    tokens.need("*")?;
    tokens.need(")")?;
    Ok(Shown::Count)
}
