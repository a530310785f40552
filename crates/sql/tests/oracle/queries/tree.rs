//! A statement as a tree of parts, which can be reduced to a smaller valid statement.

/// The kind of a part; parts of the same kind can replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// A text.
    Text,
    /// A date.
    Date,
    /// A condition.
    Truth,
    /// A clause that can be left out.
    Clause,
    /// Anything else: only its parts can be reduced.
    Whole,
}

impl Kind {
    /// The smallest texts of this kind.
    fn smallest(self) -> &'static [&'static str] {
        match self {
            Self::Number => &["1", "NULL"],
            Self::Text => &["'a'", "NULL"],
            Self::Date => &["DATE'2020-01-02'", "NULL"],
            Self::Truth => &["TRUE", "FALSE"],
            Self::Clause => &[""],
            Self::Whole => &[],
        }
    }
}

/// A part of a statement.
#[derive(Clone, Debug)]
pub struct Part {
    kind: Kind,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Words(String),
    Part(Part),
}

impl Part {
    /// A part made from a template, in which each `{}` is the next of `parts`.
    pub fn of(kind: Kind, form: &str, parts: Vec<Part>) -> Self {
        let mut pieces = Vec::new();
        let mut parts = parts.into_iter();
        for (at, words) in form.split("{}").enumerate() {
            if at > 0 {
                pieces.extend(parts.next().map(Piece::Part));
            }
            pieces.push(Piece::Words(words.to_owned()));
        }
        Self { kind, pieces }
    }

    /// A part that is plain text.
    pub fn words(kind: Kind, words: impl Into<String>) -> Self {
        Self { kind, pieces: vec![Piece::Words(words.into())] }
    }

    /// Parts separated by commas.
    pub fn list(parts: Vec<Part>) -> Self {
        let form = vec!["{}"; parts.len()].join(", ");
        Self::of(Kind::Whole, &form, parts)
    }

    /// The text of the statement.
    pub fn text(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Words(words) => words.clone(),
            Piece::Part(part) => part.text(),
        };
        self.pieces.iter().map(piece).collect()
    }

    /// Reduces the statement as long as `holds` returns true.
    pub fn shrunk(mut self, mut holds: impl FnMut(&Part) -> bool) -> Self {
        loop {
            let smaller = self.smaller().into_iter().find(|smaller| holds(smaller));
            match smaller {
                Some(smaller) => self = smaller,
                None => return self,
            }
        }
    }

    /// All statements that are one step smaller, the largest steps first.
    fn smaller(&self) -> Vec<Part> {
        let text = self.text();
        let mut smaller: Vec<Part> = Vec::new();
        let simple = self.kind.smallest().iter().map(|words| Part::words(self.kind, *words));
        smaller.extend(simple);
        let mut inner = Vec::new();
        self.collect(self.kind, &mut inner);
        smaller.extend(inner.into_iter().cloned());
        smaller.retain(|part| part.text().len() < text.len());
        for (at, piece) in self.pieces.iter().enumerate() {
            let Piece::Part(part) = piece else { continue };
            for other in part.smaller() {
                let mut whole = self.clone();
                whole.pieces[at] = Piece::Part(other);
                smaller.push(whole);
            }
        }
        smaller
    }

    /// The nearest parts of a kind below this one.
    fn collect<'p>(&'p self, kind: Kind, found: &mut Vec<&'p Part>) {
        if kind == Kind::Whole || kind == Kind::Clause {
            return;
        }
        for piece in &self.pieces {
            match piece {
                Piece::Part(part) if part.kind == kind => found.push(part),
                // A subquery may use columns that only it has.
                Piece::Part(part) if part.kind != Kind::Whole => part.collect(kind, found),
                _ => {}
            }
        }
    }
}

#[test]
fn a_statement_becomes_as_small_as_it_can() {
    let number = |words: &str| Part::words(Kind::Number, words);
    let sum = Part::of(Kind::Number, "({} + {})", vec![number("a"), number("bad")]);
    let both = Part::of(Kind::Number, "ABS({})", vec![sum]);
    let limit = Part::words(Kind::Clause, " LIMIT 1");
    let whole = Part::of(Kind::Whole, "SELECT {}{}", vec![both, limit]);
    assert_eq!(whole.text(), "SELECT ABS((a + bad)) LIMIT 1");
    let shrunk = whole.clone().shrunk(|part| part.text().contains("bad"));
    assert_eq!(shrunk.text(), "SELECT bad");
    assert_eq!(whole.shrunk(|part| part.text().contains("ABS")).text(), "SELECT ABS(1)");
}
