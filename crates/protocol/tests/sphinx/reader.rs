//! A parser of search replies, as a client has it.

use remora_protocol::sphinx::{Answer, Attribute, AttributeKind, Found, Match, Value, Word};

pub struct Reader<'r>(pub &'r [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk().unwrap();
        self.0 = rest;
        *taken
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        let length = self.u32() as usize;
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken.to_vec()
    }

    pub fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    fn list<T>(&mut self, mut entry: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.u32()).map(|_| entry(self)).collect()
    }

    /// The answers of a reply in this version, with its status.
    pub fn answers(&mut self, version: u16, status: u16) -> Vec<Answer> {
        if version < 0x10D {
            let warning = if status == 3 { self.text() } else { String::new() };
            return vec![match status {
                1 => Answer::Error(self.text()),
                _ => Answer::Found { warning, found: self.found(version) },
            }];
        }
        let mut answers = Vec::new();
        while !self.0.is_empty() {
            let status = self.u32();
            let message = if status == 0 { String::new() } else { self.text() };
            answers.push(match status {
                1 => Answer::Error(message),
                _ => Answer::Found { warning: message, found: self.found(version) },
            });
        }
        answers
    }

    fn found(&mut self, version: u16) -> Found {
        let fields = self.list(Self::text);
        let attributes = self.list(|reader| {
            let name = reader.text();
            Attribute { name, kind: kind(reader.u32()) }
        });
        let count = self.u32();
        if version >= 0x108 {
            assert_eq!(self.u32(), 1);
        }
        let matches = (0..count).map(|_| self.row(version, &attributes)).collect();
        let (total, total_found, milliseconds) = (self.u32(), self.u32(), self.u32());
        let words = self.list(|reader| Word {
            word: reader.text(),
            documents: reader.u32(),
            hits: reader.u32(),
        });
        Found { fields, attributes, matches, total, total_found, milliseconds, words }
    }

    fn row(&mut self, version: u16, attributes: &[Attribute]) -> Match {
        let id = if version >= 0x108 { self.u64() } else { self.u32().into() };
        let weight = self.u32() as i32;
        let values = attributes.iter().map(|attribute| self.value(version, attribute.kind));
        Match { id, weight, values: values.collect() }
    }

    fn value(&mut self, version: u16, kind: AttributeKind) -> Value {
        match kind {
            AttributeKind::Float => Value::Float(f32::from_be_bytes(self.array())),
            AttributeKind::BigInt if version >= 0x114 => Value::BigInt(self.u64() as i64),
            AttributeKind::Text if version >= 0x117 => Value::Text(self.bytes()),
            AttributeKind::Set if version >= 0x10C => Value::Set(self.list(Self::u32)),
            AttributeKind::WideSet if version >= 0x10C => {
                let count = self.u32() / 2;
                Value::WideSet((0..count).map(|_| self.u64() as i64).collect())
            }
            // Some of these stand for values that the version does not know.
            _ => Value::Number(self.u32()),
        }
    }
}

fn kind(code: u32) -> AttributeKind {
    [
        AttributeKind::Number,
        AttributeKind::Timestamp,
        AttributeKind::Bool,
        AttributeKind::Float,
        AttributeKind::BigInt,
        AttributeKind::Text,
        AttributeKind::Set,
        AttributeKind::WideSet,
    ]
    .into_iter()
    .find(|kind| *kind as u32 == code)
    .unwrap()
}
