//! Geometries in MySQL's storage format: four bytes of the reference system (SRID), then well-known
//! binary (WKB). Their text form is well-known text (WKT).
//!
//! ```text
//! value := srid:u32 shape
//! shape := 0x01 kind:u32 body                  all numbers are little-endian
//! body  := point | count:u32 (point | ring | shape)*
//! ```

use std::fmt::Write as _;

/// The deepest nesting of collections.
const MAX_DEPTH: usize = 32;
/// The reference system whose texts have the latitude first.
const GEOGRAPHIC: u32 = 4326;
const LITTLE_ENDIAN: u8 = 1;

/// The names of shapes by their number.
const NAMES: [&str; 7] = [
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMCOLLECTION",
];
const POINT: u32 = 1;
const LINE: u32 = 2;
const POLYGON: u32 = 3;
const COLLECTION: u32 = 7;

/// The stored form of a point.
pub(crate) fn point(x: f64, y: f64) -> Vec<u8> {
    let mut out = 0_u32.to_le_bytes().to_vec();
    head(POINT, &mut out);
    position((x, y), &mut out);
    out
}

/// Parses WKT; `None` if it is invalid.
pub(crate) fn of_text(text: &str, srid: u32) -> Option<Vec<u8>> {
    let mut out = srid.to_le_bytes().to_vec();
    let mut reader = TextReader { rest: text, swapped: srid == GEOGRAPHIC };
    reader.shape(0, &mut out)?;
    reader.rest.trim().is_empty().then_some(out)
}

/// Checks WKB and adds the reference system; `None` if it is invalid.
pub(crate) fn of_binary(shape: &[u8], srid: u32) -> Option<Vec<u8>> {
    let value: Vec<u8> = srid.to_le_bytes().into_iter().chain(shape.iter().copied()).collect();
    to_text(&value).map(|_| value)
}

/// The WKT of a stored value; `None` if it is not a geometry.
pub(crate) fn to_text(value: &[u8]) -> Option<String> {
    let (srid, shape) = parts(value)?;
    let mut reader = BinaryReader { rest: shape, swapped: srid == GEOGRAPHIC };
    let mut out = String::new();
    reader.shape(0, None, &mut out)?;
    reader.rest.is_empty().then_some(out)
}

/// Splits a stored value into its reference system and its shape.
pub(crate) fn parts(value: &[u8]) -> Option<(u32, &[u8])> {
    let (srid, shape) = value.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*srid), shape))
}

/// The name of a value's shape.
pub(crate) fn name(value: &[u8]) -> Option<&'static str> {
    let (_, shape) = parts(value)?;
    let kind = shape.get(1..5)?.try_into().ok()?;
    name_of(u32::from_le_bytes(kind))
}

/// The coordinates of a value that is a point.
pub(crate) fn coordinates(value: &[u8]) -> Option<(f64, f64)> {
    if name(value)? != "POINT" {
        return None;
    }
    let number = |at: usize| {
        let bytes = value.get(at..at + 8)?.try_into().ok()?;
        Some(f64::from_le_bytes(bytes))
    };
    Some((number(9)?, number(17)?))
}

fn name_of(kind: u32) -> Option<&'static str> {
    let place = usize::try_from(kind).ok()?.checked_sub(1)?;
    NAMES.get(place).copied()
}

/// The kind of the parts of a multi-shape.
fn part_of(kind: u32) -> Option<u32> {
    (4..=6).contains(&kind).then(|| kind - 3)
}

fn head(kind: u32, out: &mut Vec<u8>) {
    out.push(LITTLE_ENDIAN);
    out.extend_from_slice(&kind.to_le_bytes());
}

fn position((x, y): (f64, f64), out: &mut Vec<u8>) {
    out.extend_from_slice(&x.to_le_bytes());
    out.extend_from_slice(&y.to_le_bytes());
}

struct TextReader<'t> {
    rest: &'t str,
    swapped: bool,
}

impl TextReader<'_> {
    fn take(&mut self, mark: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(mark)?;
        Some(())
    }

    fn word(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_ascii_uppercase())
    }

    fn number(&mut self) -> Option<f64> {
        self.rest = self.rest.trim_start();
        let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
        let end = self.rest.find(|c: char| !is_digit(c)).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        digits.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn position(&mut self) -> Option<(f64, f64)> {
        let (first, second) = (self.number()?, self.number()?);
        Some(if self.swapped { (second, first) } else { (first, second) })
    }

    /// Parses `(part, …)`; returns the number of parts.
    fn list(
        &mut self,
        out: &mut Vec<u8>,
        mut part: impl FnMut(&mut Self, &mut Vec<u8>) -> Option<()>,
    ) -> Option<u32> {
        let place = out.len();
        out.extend_from_slice(&[0; 4]);
        self.take('(')?;
        let mut count = 0_u32;
        loop {
            part(self, out)?;
            count += 1;
            if self.take(',').is_none() {
                break;
            }
        }
        self.take(')')?;
        out.get_mut(place..place + 4)?.copy_from_slice(&count.to_le_bytes());
        Some(count)
    }

    fn shape(&mut self, depth: usize, out: &mut Vec<u8>) -> Option<()> {
        let word = self.word()?;
        let word = if word == "GEOMETRYCOLLECTION" { "GEOMCOLLECTION" } else { word.as_str() };
        let place = NAMES.iter().position(|name| *name == word)?;
        let kind = u32::try_from(place).ok()? + 1;
        head(kind, out);
        if kind != COLLECTION {
            return self.body(kind, out);
        }
        if depth >= MAX_DEPTH {
            return None;
        }
        let mut ahead = TextReader { rest: self.rest, ..*self };
        let empty = ahead.word().is_some_and(|word| word == "EMPTY")
            || ahead.take('(').and_then(|()| ahead.take(')')).is_some();
        if empty {
            self.rest = ahead.rest;
            out.extend_from_slice(&[0; 4]);
            return Some(());
        }
        self.list(out, |reader, out| reader.shape(depth + 1, out)).map(drop)
    }

    fn body(&mut self, kind: u32, out: &mut Vec<u8>) -> Option<()> {
        match part_of(kind) {
            Some(POINT) => self.list(out, |reader, out| {
                head(POINT, out);
                // Points may have their own parentheses or none.
                let enclosed = reader.take('(').is_some();
                position(reader.position()?, out);
                if enclosed { reader.take(')') } else { Some(()) }
            }),
            Some(part) => self.list(out, |reader, out| {
                head(part, out);
                reader.body(part, out)
            }),
            None if kind == POINT => {
                self.take('(')?;
                position(self.position()?, out);
                return self.take(')');
            }
            None if kind == LINE => self.line(out).filter(|count| *count >= 2),
            None => self.list(out, |reader, out| {
                let begin = out.len() + 4;
                let count = reader.line(out)?;
                // A ring must end at its first point.
                let first = out.get(begin..begin + 16)?;
                (count >= 4 && out.ends_with(first)).then_some(())
            }),
        }
        .map(drop)
    }

    fn line(&mut self, out: &mut Vec<u8>) -> Option<u32> {
        self.list(out, |reader, out| {
            position(reader.position()?, out);
            Some(())
        })
    }
}

struct BinaryReader<'b> {
    rest: &'b [u8],
    swapped: bool,
}

impl BinaryReader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn count(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn kind(&mut self) -> Option<u32> {
        let [order] = self.array()?;
        if order == LITTLE_ENDIAN { self.count() } else { None }
    }

    fn position(&mut self, out: &mut String) -> Option<()> {
        let (x, y) = (f64::from_le_bytes(self.array()?), f64::from_le_bytes(self.array()?));
        let (first, second) = if self.swapped { (y, x) } else { (x, y) };
        if !x.is_finite() || !y.is_finite() {
            return None;
        }
        write!(out, "{} {}", shown(first), shown(second)).ok()
    }

    fn list(
        &mut self,
        out: &mut String,
        mut part: impl FnMut(&mut Self, &mut String) -> Option<()>,
    ) -> Option<()> {
        let count = self.count()?;
        if count == 0 {
            return None;
        }
        out.push('(');
        for index in 0..count {
            if index > 0 {
                out.push(',');
            }
            part(self, out)?;
        }
        out.push(')');
        Some(())
    }

    /// Writes a shape, with its name unless it is a part of a multi-shape.
    fn shape(&mut self, depth: usize, wanted: Option<u32>, out: &mut String) -> Option<()> {
        let kind = self.kind()?;
        if wanted.is_some_and(|wanted| wanted != kind) || depth > MAX_DEPTH {
            return None;
        }
        if wanted.is_none() {
            let name = name_of(kind)?;
            out.push_str(if kind == COLLECTION { "GEOMETRYCOLLECTION" } else { name });
        }
        match part_of(kind) {
            Some(part) => self.list(out, |reader, out| reader.shape(depth + 1, Some(part), out)),
            None if kind == COLLECTION && self.rest.starts_with(&[0; 4]) => {
                out.push_str(" EMPTY");
                self.count().map(drop)
            }
            None if kind == COLLECTION => {
                self.list(out, |reader, out| reader.shape(depth + 1, None, out))
            }
            None if kind == POINT => {
                out.push('(');
                self.position(out)?;
                out.push(')');
                Some(())
            }
            None if kind == LINE => self.list(out, Self::position),
            None if kind == POLYGON => {
                self.list(out, |reader, out| reader.list(out, Self::position))
            }
            None => None,
        }
    }
}

/// A coordinate in plain notation if it is short, else with an exponent.
fn shown(number: f64) -> String {
    let plain = number == 0.0 || (1e-15..1e15).contains(&number.abs());
    if plain { format!("{number}") } else { format!("{number:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let texts = [
            "POINT(1 2)",
            "LINESTRING(0 0,1.5 1)",
            "POLYGON((0 0,1 0,1 1,0 0),(0.1 0.1,0.2 0.1,0.2 0.2,0.1 0.1))",
            "MULTIPOINT((1 1),(2 2))",
            "MULTILINESTRING((1 1,2 2),(3 3,4 4))",
            "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))",
            "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))",
            "GEOMETRYCOLLECTION EMPTY",
        ];
        for text in texts {
            let value = of_text(text, 0).unwrap();
            assert_eq!(to_text(&value).as_deref(), Some(text));
            for end in 0..value.len() {
                assert_eq!(to_text(&value[..end]), None, "{text} cut at {end}");
            }
        }
        assert_eq!(to_text(&of_text(" multipoint( 1 1 , 2 2 ) ", 0).unwrap()).unwrap(), texts[3]);
        assert_eq!(of_text("POINT(1 2)", 4326).unwrap()[9..17], 2.0_f64.to_le_bytes());
        assert_eq!(to_text(&of_text("POINT(1 2)", 4326).unwrap()).unwrap(), "POINT(1 2)");
    }

    #[test]
    fn what_is_no_geometry_is_none() {
        let deep = "GEOMETRYCOLLECTION(".repeat(100_000);
        let wrong = [
            "",
            "abc",
            "POINT(1)",
            "POINT(1 2",
            "POINT(1 2) x",
            "LINESTRING(1 1)",
            "POLYGON((0 0,1 1,2 2,3 3))",
            "POINT(nan 1)",
            "POINT EMPTY",
            deep.as_str(),
        ];
        for text in wrong {
            assert_eq!(of_text(text, 0), None);
        }
        assert_eq!(to_text(&[0, 0, 0, 0, 1, 2, 0, 0, 0, 255, 255, 255, 255]), None);
    }
}
