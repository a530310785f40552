//! Random tables and requests from a seed.

use super::{
    oracle::searched,
    table::{BODY, CATEGORY, ID, NUMBER, PRICE, Stored, TITLE},
};
use crate::{Comparison, Filter, Literal, Row, SortBy, SortKey, TextQuery, Value};

const WORDS: [&str; 34] = [
    "alpha",
    "Alphabet",
    "beta",
    "BETA",
    "gamma",
    "a",
    "ab",
    "abc",
    "b",
    "ba",
    "ＡＢＣ",
    "ß",
    "ss",
    "café",
    "cafe\u{301}",
    "日本",
    "日本語",
    "東京",
    "東",
    "カタカナ",
    "ｶﾞﾗｽ",
    "대한민국",
    "한국",
    "c++",
    "a.b",
    "x-ray",
    "😀",
    "ﬁne",
    "Straße",
    "Σίσυφος",
    "42",
    "4",
    "नमस्ते",
    "e",
];
const SEPARATORS: [&str; 10] = [" ", " ", " ", "  ", ", ", "-", "", "\n", "。", "!? "];

/// A small generator (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn text(&mut self, words: usize) -> String {
        let count = self.below(words + 1);
        (0..count).map(|_| self.one(&WORDS).to_owned() + self.one(&SEPARATORS)).collect()
    }

    fn value(&mut self, column: usize) -> Value {
        if self.chance(20) {
            return Value::Null;
        }
        match column {
            NUMBER => Value::Int(self.below(12) as i64 - 4),
            PRICE => Value::Float(self.below(9) as f64 / 4.0 - 1.0),
            _ => Value::Text(self.one(&["red", "Red", "green", "blue", "", "緑"]).into()),
        }
    }

    pub fn row(&mut self, id: i64) -> Row {
        let mut row = vec![Value::Null; 6];
        row[ID] = Value::Int(id);
        for column in [NUMBER, PRICE, CATEGORY] {
            row[column] = self.value(column);
        }
        row[TITLE] = Value::Text(self.text(4).into());
        if self.chance(90) {
            row[BODY] = Value::Text(self.text(12).into());
        }
        row
    }

    /// Rows with distinct ids, not in order.
    pub fn rows(&mut self, count: usize) -> Vec<Row> {
        let ids = (0..count as i64).map(|index| (index * 7919) % 100_003 - 40_000);
        ids.map(|id| self.row(id)).collect()
    }

    /// The rows over some segments, with documents among them that are gone since.
    pub fn spread(&mut self, rows: &[Row], segments: usize) -> Vec<Vec<Stored>> {
        let mut spread: Vec<Vec<Stored>> = (0..segments).map(|_| Vec::new()).collect();
        for row in rows {
            let home = self.below(segments);
            spread[home].push(Stored { row: row.clone(), deleted: false });
            let other = self.below(segments);
            if other != home && self.chance(30) {
                let Value::Int(id) = row[ID] else { continue };
                spread[other].push(Stored { row: self.row(id), deleted: true });
            }
        }
        for segment in &mut spread {
            for _ in 0..self.below(6) {
                let id = 200_000 + self.below(1000) as i64;
                segment.push(Stored { row: self.row(id), deleted: true });
            }
        }
        spread
    }

    /// A term: a word, or a piece of some row's text.
    pub fn term(&mut self, rows: &[Row]) -> String {
        loop {
            let term = if rows.is_empty() || self.chance(40) {
                self.one(&WORDS).to_owned()
            } else {
                let at = self.below(rows.len());
                let text: Vec<char> = searched(&rows[at]).chars().collect();
                let start = self.below(text.len());
                let length = 1 + self.below(9);
                text.iter().skip(start).take(length).collect()
            };
            if !remora_index::text::Normalization::default().apply(&term).is_empty() {
                return term;
            }
        }
    }

    pub fn query(&mut self, rows: &[Row], depth: usize) -> TextQuery {
        let parts = |random: &mut Self| {
            (0..1 + random.below(3)).map(|_| random.query(rows, depth - 1)).collect()
        };
        match self.below(if depth == 0 { 1 } else { 6 }) {
            0..=2 => TextQuery::Term(self.term(rows)),
            3 => TextQuery::And(parts(self)),
            4 => TextQuery::Or(parts(self)),
            _ => TextQuery::Not(Box::new(self.query(rows, depth - 1))),
        }
    }

    fn literal(&mut self, column: usize) -> Literal {
        loop {
            let value = self.value(column);
            if !value.is_null() {
                return Literal::Value(value);
            }
        }
    }

    pub fn filter(&mut self, depth: usize) -> Filter {
        let column = self.one(&[NUMBER, PRICE, CATEGORY]);
        let name = ["", "number", "price", "category"][column].to_owned();
        let parts =
            |random: &mut Self| (0..random.below(4)).map(|_| random.filter(depth - 1)).collect();
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 | 1 => Filter::Compare {
                column: name,
                comparison: self.one(&[
                    Comparison::Equal,
                    Comparison::NotEqual,
                    Comparison::Greater,
                    Comparison::GreaterOrEqual,
                    Comparison::Less,
                    Comparison::LessOrEqual,
                ]),
                literal: self.literal(column),
            },
            2 => Filter::In(name, (0..self.below(4)).map(|_| self.literal(column)).collect()),
            3 => Filter::Between(name, self.literal(column), self.literal(column)),
            4 => Filter::IsNull(name),
            5 => Filter::IsNotNull(name),
            6 => Filter::And(parts(self)),
            7 => Filter::Or(parts(self)),
            _ => Filter::Not(Box::new(self.filter(depth - 1))),
        }
    }

    pub fn order(&mut self) -> Vec<SortKey> {
        let count = self.below(4);
        let by = [
            SortBy::Key,
            SortBy::Score,
            SortBy::Column("number".to_owned()),
            SortBy::Column("price".to_owned()),
            SortBy::Column("category".to_owned()),
            SortBy::Column("id".to_owned()),
        ];
        (0..count)
            .map(|_| SortKey { by: by[self.below(6)].clone(), descending: self.chance(50) })
            .collect()
    }
}
