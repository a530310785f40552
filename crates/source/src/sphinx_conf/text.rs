//! Parses a sphinx.conf into sections and settings, as Sphinx 2.2.11 does.
//!
//! ```text
//! file    = { section }
//! section = ("source" | "index") name [":" parent] "{" { setting } "}"
//!         | ("indexer" | "searchd" | "common") "{" { setting } "}"
//! setting = key "=" value end-of-line
//! ```
//! `#` begins a comment, `\#` is the character itself, and `\` at the end of a line joins it to the next. A section
//! with a parent inherits the parent's settings; a key of its own replaces all inherited values. A value ends with its
//! line, so a closing brace needs a line of its own.

use super::{
    keys::{self, SectionKind},
    wrong,
};
use crate::Result;

/// The most bytes of all settings, counting inherited ones again.
const MAX_BYTES: usize = 64 << 20;
/// The most sections, and the most settings of a section: each is compared with those before it.
const MAX_SECTIONS: usize = 10_000;
const MAX_SETTINGS: usize = 1_000;

/// A section with all its settings, those of its parents included.
#[derive(Clone)]
pub(super) struct Section {
    pub kind: SectionKind,
    /// Empty for sections without a name.
    pub name: String,
    pub line: u32,
    pub settings: Vec<Setting>,
}

/// One value of a key.
#[derive(Clone)]
pub(super) struct Setting {
    pub key: &'static str,
    pub value: String,
    pub line: u32,
    /// Whether it is inherited, so that the section's own values replace it.
    inherited: bool,
}

impl Section {
    /// The first value of a key.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// All values of a key.
    pub fn all<'s>(&'s self, key: &'s str) -> impl Iterator<Item = &'s Setting> {
        self.settings.iter().filter(move |setting| setting.key == key)
    }

    /// The text of a key's value; empty if there is none.
    pub fn text(&self, key: &str) -> &str {
        self.get(key).map_or("", |setting| &setting.value)
    }
}

/// Parses a text. Conditions of which Sphinx only warns are added to `warnings`.
pub(super) fn parse(file: &str, text: &str, warnings: &mut Vec<String>) -> Result<Vec<Section>> {
    if text.starts_with("#!") {
        return Err(wrong(
            file,
            1,
            "a sphinx.conf that is a script (#!) is not run: run it, and name a file with what it prints",
        ));
    }
    let mut parser = Parser {
        file,
        text: text.strip_prefix('\u{feff}').unwrap_or(text),
        line: 1,
        bytes: 0,
        sections: Vec::new(),
        warnings,
    };
    while parser.skip_blank().is_some() {
        parser.section()?;
    }
    Ok(parser.sections)
}

struct Parser<'t> {
    file: &'t str,
    /// The unread rest.
    text: &'t str,
    line: u32,
    bytes: usize,
    sections: Vec<Section>,
    warnings: &'t mut Vec<String>,
}

impl Parser<'_> {
    fn section(&mut self) -> Result<()> {
        let line = self.line;
        let word = self.word("a section: source, index, indexer, searchd or common")?;
        let Some(kind) = SectionKind::of(&word) else {
            return self.refuse(
                line,
                format!("'{word}' is no section: take source, index, indexer, searchd or common"),
            );
        };
        let name = match kind.is_named() {
            true => self.word(&format!("the name of the {word}"))?,
            false => String::new(),
        };
        if let Some(other) = self.find(kind, &name) {
            let there = self.sections.get(other).map_or(0, |section| section.line);
            return self.refuse(
                line,
                format!("this section is there already, in line {there}: give it another name"),
            );
        }
        if self.sections.len() >= MAX_SECTIONS {
            let message =
                format!("there are {MAX_SECTIONS} sections before this one: split the file");
            return self.refuse(line, message);
        }
        let settings = self.parent(kind, &name)?;
        self.expect('{', "an opening brace")?;
        let mut section = Section { kind, name, line, settings };
        loop {
            match self.skip_blank() {
                None => {
                    return self.refuse(
                        line,
                        "the section that begins here is not closed: put } on a line of its own"
                            .to_owned(),
                    );
                }
                Some('}') => break,
                Some(_) => self.setting(&mut section)?,
            }
        }
        self.take(1);
        self.sections.push(section);
        Ok(())
    }

    fn find(&self, kind: SectionKind, name: &str) -> Option<usize> {
        self.sections.iter().position(|section| section.kind == kind && section.name == name)
    }

    /// The settings that a section inherits.
    fn parent(&mut self, kind: SectionKind, name: &str) -> Result<Vec<Setting>> {
        if !kind.is_named() || self.skip_blank() != Some(':') {
            return Ok(Vec::new());
        }
        self.take(1);
        let line = self.line;
        let parent = self.word("the name of a parent")?;
        let found = self.find(kind, &parent).and_then(|at| self.sections.get(at));
        let Some(found) = found else {
            return self.refuse(
                line,
                format!("the parent '{parent}' of '{name}' is not there: put it before this one"),
            );
        };
        let inherit = |setting: &Setting| Setting { inherited: true, ..setting.clone() };
        let settings: Vec<_> = found.settings.iter().map(inherit).collect();
        let bytes = settings.iter().map(|setting| size_of::<Setting>() + setting.value.len()).sum();
        self.count(bytes)?;
        Ok(settings)
    }

    fn setting(&mut self, section: &mut Section) -> Result<()> {
        let line = self.line;
        let word = self.word("a key, or a closing brace")?;
        let Some(key) = keys::find(section.kind, &word) else {
            let near = keys::nearest(section.kind, &word);
            let advice = near.map_or_else(
                || "take the line out".to_owned(),
                |near| format!("did you mean '{near}'?"),
            );
            let place = section.kind.name();
            return self.refuse(line, format!("'{word}' is no key of a section {place}: {advice}"));
        };
        self.expect('=', &format!("= behind {word}"))?;
        let value = self.value();
        self.count(size_of::<Setting>() + value.len())?;
        let is_same = |setting: &Setting| setting.key == key.name;
        section.settings.retain(|setting| !(is_same(setting) && setting.inherited));
        if !key.is_list && section.settings.iter().any(is_same) {
            self.warnings.push(format!(
                "{}:{line}: {} has a value already; this one is passed over",
                self.file, key.name
            ));
            return Ok(());
        }
        if section.settings.len() >= MAX_SETTINGS {
            let message = format!("the section has {MAX_SETTINGS} settings before this one");
            return self.refuse(line, message);
        }
        section.settings.push(Setting { key: key.name, value, line, inherited: false });
        Ok(())
    }

    /// The rest of the line, and of the lines joined to it.
    fn value(&mut self) -> String {
        let mut value = String::new();
        loop {
            let end = self.text.find(['\n', '#', '\\']).unwrap_or(self.text.len());
            value.push_str(self.text.get(..end).unwrap_or_default());
            self.take(end);
            let mut next = self.text.chars();
            match (next.next(), next.next()) {
                (Some('\\'), Some('\r' | '\n')) => self.skip_line(),
                (Some('\\'), Some('#')) => {
                    value.push('#');
                    self.take(2);
                }
                (Some('\\'), _) => {
                    value.push('\\');
                    self.take(1);
                }
                (Some('#'), _) => {
                    self.skip_line();
                    break;
                }
                _ => break,
            }
        }
        value.trim().to_owned()
    }

    /// Skips spaces and comments; returns the next character.
    fn skip_blank(&mut self) -> Option<char> {
        loop {
            let blank = self.text.len() - self.text.trim_start().len();
            self.take(blank);
            match self.text.chars().next() {
                Some('#') => self.skip_line(),
                other => return other,
            }
        }
    }

    fn skip_line(&mut self) {
        let end = self.text.find('\n').map_or(self.text.len(), |end| end + 1);
        self.take(end);
    }

    /// Skips this many bytes.
    fn take(&mut self, bytes: usize) {
        let (passed, rest) = self.text.split_at(bytes.min(self.text.len()));
        let lines = memchr::memchr_iter(b'\n', passed.as_bytes()).count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.text = rest;
    }

    fn word(&mut self, wanted: &str) -> Result<String> {
        self.skip_blank();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = self.text.find(|c| !is_word(c)).unwrap_or(self.text.len());
        let word = self.text.get(..end).unwrap_or_default().to_owned();
        if word.is_empty() {
            return self.refuse(self.line, format!("{} stands where {wanted} is due", self.here()));
        }
        self.take(end);
        Ok(word)
    }

    fn expect(&mut self, wanted: char, name: &str) -> Result<()> {
        if self.skip_blank() == Some(wanted) {
            self.take(1);
            return Ok(());
        }
        self.refuse(self.line, format!("{} stands where {name} is due", self.here()))
    }

    /// The next word, for a message.
    fn here(&self) -> String {
        let word: String = self.text.chars().take_while(|c| !c.is_whitespace()).take(30).collect();
        if word.is_empty() { "the end of the file".to_owned() } else { format!("'{word}'") }
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.bytes > MAX_BYTES {
            true => self.refuse(
                self.line,
                "the settings up to here take more than 64 MiB: split the file".to_owned(),
            ),
            false => Ok(()),
        }
    }

    fn refuse<T>(&self, line: u32, message: String) -> Result<T> {
        Err(wrong(self.file, line, message))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sections(text: &str) -> Vec<Section> {
        parse("f.conf", text, &mut Vec::new()).unwrap()
    }

    fn error(text: &str) -> String {
        parse("f.conf", text, &mut Vec::new()).err().unwrap().to_string()
    }

    fn values<'s>(section: &'s Section, key: &'s str) -> Vec<&'s str> {
        section.all(key).map(|setting| setting.value.as_str()).collect()
    }

    #[test]
    fn values_end_with_their_line_unless_it_is_joined() {
        let text = "# c\nsource s # c\n{\n sql_query = SELECT a, \\\n   b \\# c FROM t # rest\r\n\
                    TYPE=mysql\nsql_pass = a\\b\n sql_host = x }\n sql_user =\n}\nsearchd\n{\n}";
        let found = sections(text);
        let source = &found[0];
        assert_eq!((source.name.as_str(), source.line), ("s", 2));
        assert_eq!(source.text("sql_query"), "SELECT a,    b # c FROM t");
        assert_eq!(source.get("type").unwrap().line, 6);
        assert_eq!((source.text("sql_pass"), source.text("sql_user")), ("a\\b", ""));
        assert_eq!(source.text("sql_host"), "x }");
        assert_eq!((found[1].kind, found.len()), (SectionKind::Searchd, 2));
    }

    #[test]
    fn section_inherits_settings_it_does_not_set() {
        let text = "source a {\nsql_query_pre = x\nsql_query_pre = y\nsql_db = d\n}\n\
                    source b : a {\nsql_query_pre = z\nsql_query_pre = w\n}\n\
                    source c:b\n{\nsql_db = e\n}\n";
        let found = sections(text);
        assert_eq!(values(&found[0], "sql_query_pre"), ["x", "y"]);
        assert_eq!(values(&found[1], "sql_query_pre"), ["z", "w"]);
        assert_eq!(found[1].text("sql_db"), "d");
        assert_eq!(values(&found[2], "sql_query_pre"), ["z", "w"]);
        assert_eq!(found[2].text("sql_db"), "e");
    }

    #[test]
    fn second_value_of_a_single_value_key_is_reported() {
        let mut warnings = Vec::new();
        let text = "index i {\npath = a\npath = b\n}";
        let found = parse("f.conf", text, &mut warnings).unwrap();
        assert_eq!(found[0].text("path"), "a");
        assert_eq!(warnings, ["f.conf:3: path has a value already; this one is passed over"]);
    }

    #[test]
    fn errors_have_a_line_and_advice() {
        let cases = [
            ("#!/usr/bin/php\n", "f.conf:1: a sphinx.conf that is a script (#!) is not run"),
            ("\nindx i {\n}", "f.conf:2: 'indx' is no section: take source, index"),
            ("index {\n}", "f.conf:1: '{' stands where the name of the index is due"),
            ("index i {\npath = a }\n", "f.conf:1: the section that begins here is not closed"),
            ("index i {\n} index i {\n}", "f.conf:2: this section is there already, in line 1"),
            ("index i : j {\n}", "f.conf:1: the parent 'j' of 'i' is not there"),
            (
                "index i {\nmorfology = none\n}",
                "f.conf:2: 'morfology' is no key of a section index: did you mean 'morphology'?",
            ),
            ("index i {\npath\n}", "f.conf:3: '}' stands where = behind path is due"),
            ("index i {\n= x\n}", "f.conf:2: '=' stands where a key, or a closing brace is due"),
            ("index i", "the end of the file stands where an opening brace is due"),
        ];
        for (text, message) in cases {
            let found = error(text);
            assert!(found.starts_with(message) || found.ends_with(message), "{found} / {message}");
        }
    }

    #[test]
    fn inherited_settings_are_bounded_in_memory() {
        let long = "x".repeat(1 << 20);
        let mut text = format!("index i0 {{\nmorphology = {long}\n}}\n");
        for number in 1..100 {
            text += &format!("index i{number} : i0 {{\n}}\n");
        }
        assert!(error(&text).contains("more than 64 MiB"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(source|index|searchd|[a-z:{}=#\\\\ \n\r]|path = ){0,40}") {
            let _ = parse("f", &text, &mut Vec::new());
        }
    }
}
