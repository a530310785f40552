//! Resolves names: columns, aliases of the select list, and values that Sphinx computes.

use super::{ColumnKind, Result, TableShape, quote};
use crate::sphinx::{Anchor, Query};

/// The earth's radius in metres from which Sphinx computes `@geodist`.
const ANCHOR_RADIUS_M: f64 = 6_384_000.0;
/// The radius in metres from which Sphinx computes its function GEODIST.
const GEODIST_RADIUS_M: f64 = 6_371_000.0;

/// A value within a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The value in SQL.
    pub sql: String,
    /// The type of the value.
    pub kind: ColumnKind,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// Whether it contains the weight, which WHERE cannot use.
    pub has_weight: bool,
    /// Whether it is a column and nothing else.
    pub is_column: bool,
    /// Whether it is the key, which is a number without a sign.
    pub is_key: bool,
}

impl Term {
    /// A computed value that is never NULL.
    pub fn computed(sql: impl Into<String>, kind: ColumnKind) -> Self {
        let sql = sql.into();
        Self { sql, kind, is_nullable: false, has_weight: false, is_column: false, is_key: false }
    }

    /// A value that is computed from others and is never NULL.
    pub fn made_of(sql: String, kind: ColumnKind, parts: &[Self]) -> Self {
        let has_weight = parts.iter().any(|part| part.has_weight);
        Self { has_weight, ..Self::computed(sql, kind) }
    }

    /// A value that is computed from others and is NULL in MySQL in some cases, such as a division by zero. In these
    /// cases Sphinx has 0 and continues with it.
    pub fn partial(sql: String, kind: ColumnKind, parts: &[Self]) -> Self {
        Self { is_nullable: true, ..Self::made_of(sql, kind, parts) }
    }

    /// The weight of the row.
    pub fn weight() -> Self {
        Self { has_weight: true, ..Self::computed("WEIGHT()", ColumnKind::Number) }
    }

    /// The value to sort by: NULL counts as 0 or an empty text, as in Sphinx.
    pub fn ordered(self) -> Self {
        match self.is_nullable {
            true => Self { sql: self.filled(), is_nullable: false, is_column: false, ..self },
            false => self,
        }
    }

    /// The SQL of the value, with 0 or an empty text instead of NULL.
    fn filled(&self) -> String {
        let zero = match self.kind {
            ColumnKind::Text | ColumnKind::Json => "''",
            _ => "0",
        };
        format!("COALESCE({}, {zero})", self.sql)
    }

    /// The value as an operand: never NULL, and never an unsigned integer, because MySQL refuses to subtract a greater
    /// number from one.
    pub fn operand(self) -> Self {
        let mut sql = if self.is_nullable { self.filled() } else { self.sql };
        if self.is_column && matches!(self.kind, ColumnKind::Number | ColumnKind::BigInt) {
            sql = format!("CAST({sql} AS SIGNED)");
        }
        Self { sql, is_nullable: false, is_column: false, is_key: false, ..self }
    }
}

/// The names that a query can use.
pub struct Names<'s> {
    /// The table.
    pub shape: &'s TableShape,
    /// The distance from the query's anchor.
    pub distance: Option<Term>,
    /// The expression by which rows are sorted.
    pub sort_expression: Option<Term>,
    /// The aliases of the select list, with their values.
    pub aliases: Vec<(String, Term)>,
}

impl<'s> Names<'s> {
    /// The names of a query, before its clauses add aliases.
    pub fn of(query: &Query<'_>, shape: &'s TableShape) -> Result<Self> {
        let mut names = Self { shape, distance: None, sort_expression: None, aliases: Vec::new() };
        if let Some(anchor) = &query.anchor {
            names.distance = Some(names.distance_from(anchor)?);
        }
        Ok(names)
    }

    fn distance_from(&self, anchor: &Anchor<'_>) -> Result<Term> {
        let place = |name: &str, what: &str| {
            let column = self.column(name);
            column.ok_or_else(|| self.shape.refuse(format!("unknown {what} attribute '{name}'")))
        };
        let latitude = place(&anchor.latitude_column, "latitude")?.operand();
        let longitude = place(&anchor.longitude_column, "longitude")?.operand();
        if !anchor.latitude.is_finite() || !anchor.longitude.is_finite() {
            return Err(self.shape.refuse("the anchor is no place"));
        }
        let constant = |number: f32| quote::number(f64::from(number));
        let (from, to) = (
            [latitude.sql, longitude.sql],
            [constant(anchor.latitude), constant(anchor.longitude)],
        );
        // Beyond the poles there is no root.
        Ok(Term::partial(haversine(&from, &to, ANCHOR_RADIUS_M), ColumnKind::Double, &[]))
    }

    /// The value of a name; `None` if it is unknown.
    pub fn find(&self, name: &str) -> Option<Term> {
        let lower = name.to_lowercase();
        match &*lower {
            "@weight" | "@relevance" | "@rank" => return Some(Term::weight()),
            "@id" => return Some(self.key()),
            "@geodist" => return self.distance.clone(),
            "@expr" => return self.sort_expression.clone(),
            _ => {}
        }
        let alias = self.aliases.iter().find(|(alias, _)| *alias == lower);
        alias.map(|(_, term)| term.clone()).or_else(|| self.column(name))
    }

    /// A column of the table. `id` is the key, whatever the name of its column, unless another column is called `id`.
    fn column(&self, name: &str) -> Option<Term> {
        let column = self.shape.column(name).map(|column| Term {
            sql: column.value(),
            kind: column.kind,
            is_nullable: column.is_nullable,
            has_weight: false,
            is_column: true,
            is_key: false,
        });
        let is_key = name.eq_ignore_ascii_case("id") || name.eq_ignore_ascii_case(&self.shape.key);
        column.or_else(|| is_key.then(|| self.key()))
    }

    /// The key of the table.
    pub fn key(&self) -> Term {
        let key = quote::name(&self.shape.key);
        Term { is_column: true, is_key: true, ..Term::computed(key, ColumnKind::BigInt) }
    }
}

/// The function GEODIST of four values in radians.
pub fn geodist(places: &[Term; 4]) -> Term {
    let [from_latitude, from_longitude, to_latitude, to_longitude] = places;
    let from = [from_latitude.sql.clone(), from_longitude.sql.clone()];
    let to = [to_latitude.sql.clone(), to_longitude.sql.clone()];
    // Beyond the poles there is no root.
    Term::partial(haversine(&from, &to, GEODIST_RADIUS_M), ColumnKind::Double, places)
}

/// The SQL of the distance of two places on a sphere, in the unit of the radius. Latitudes and longitudes are in
/// radians.
fn haversine(from: &[String; 2], to: &[String; 2], radius: f64) -> String {
    let ([lat1, lon1], [lat2, lon2]) = (from, to);
    format!(
        "({} * 2 * ASIN(LEAST(1, SQRT(POW(SIN(({lat1} - {lat2}) / 2), 2) + \
         COS({lat1}) * COS({lat2}) * POW(SIN(({lon1} - {lon2}) / 2), 2)))))",
        quote::number(radius)
    )
}
