//! Statement templates: `{…}` is a literal that is drawn for each run.
//!
//! ```text
//! -- name [note | note]
//! SELECT … WHERE id = {user};
//! ```

use anyhow::{Context, Result, ensure};
use mysql::Value;

use super::draw::LiteralGenerator;

/// A statement without its literals.
#[derive(Clone, Debug)]
pub struct Template {
    pub name: String,
    /// The notes in brackets after the name.
    pub notes: Vec<String>,
    pub text: String,
}

/// A statement with its literals.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledTemplate {
    /// The text with the literals in it.
    pub text: String,
    /// The text with a `?` for each literal.
    pub prepared: String,
    pub values: Vec<Value>,
}

impl Template {
    /// Reads the templates of a file.
    pub fn read(file: &str) -> Result<Vec<Self>> {
        let blocks = file.split(";\n").map(str::trim).filter(|block| !block.is_empty());
        blocks.map(Self::of_block).collect()
    }

    fn of_block(block: &str) -> Result<Self> {
        let (head, text) = block.split_once('\n').with_context(|| format!("no text: {block}"))?;
        let head = head.strip_prefix("-- ").with_context(|| format!("no name: {block}"))?;
        let (name, notes) = match head.split_once(" [") {
            None => (head, Vec::new()),
            Some((name, notes)) => {
                let notes = notes.strip_suffix(']').with_context(|| format!("no end: {head}"))?;
                (name, notes.split(" | ").map(str::to_owned).collect())
            }
        };
        Ok(Self { name: name.to_owned(), notes, text: text.to_owned() })
    }

    /// Fills in the next literals.
    pub fn fill(&self, draw: &mut LiteralGenerator<'_>) -> Result<FilledTemplate> {
        draw.begin();
        let (mut text, mut prepared, mut values) = (String::new(), String::new(), Vec::new());
        let mut rest = self.text.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let (marker, behind) =
                behind.split_once('}').with_context(|| format!("{}: no end of {{", self.name))?;
            let literals = draw.literals(marker).with_context(|| self.name.clone())?;
            ensure!(!literals.is_empty(), "{}: nothing for {marker}", self.name);
            let texts: Vec<String> = literals.iter().map(|value| value.as_sql(true)).collect();
            text += &format!("{before}{}", texts.join(", "));
            prepared += &format!("{before}{}", vec!["?"; literals.len()].join(", "));
            values.extend(literals);
            rest = behind;
        }
        Ok(FilledTemplate { text: text + rest, prepared: prepared + rest, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::rows::Shop;

    #[test]
    fn a_file_has_names_notes_and_texts() {
        let file = "-- one [near | fast]\nSELECT 1\nFROM t;\n\n-- two\nSELECT {user};\n";
        let read = Template::read(file).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].name.as_str(), read[0].text.as_str()), ("one", "SELECT 1\nFROM t"));
        assert_eq!((read[0].notes.join(" "), read[1].notes.len()), ("near fast".to_owned(), 0));
        assert!(Template::read("SELECT 1;\n").is_err());
    }

    #[test]
    fn literals_and_parameters_say_the_same() {
        let file = "-- x\nSELECT {user}, {user}, {email} FROM t WHERE id IN ({orders:3});\n";
        let template = &Template::read(file).unwrap()[0];
        let shop = Shop::new(0.01);
        let mut draw = LiteralGenerator::new(&shop, 1);
        let filled = template.fill(&mut draw).unwrap();
        assert_eq!(filled.prepared, "SELECT ?, ?, ? FROM t WHERE id IN (?, ?, ?)");
        let mut text = filled.prepared.clone();
        for value in &filled.values {
            text = text.replacen('?', &value.as_sql(true), 1);
        }
        assert_eq!(text, filled.text);
        assert_eq!(filled.values[0], filled.values[1]);
        assert_ne!(template.fill(&mut draw).unwrap(), filled);
        assert_eq!(template.fill(&mut LiteralGenerator::new(&shop, 1)).unwrap(), filled);
    }
}
