//! xmlpipe2: documents as a stream of XML.
//!
//! ```text
//! <sphinx:docset>
//!   <sphinx:schema>                                     (instead of what the configuration declares)
//!     <sphinx:field name="title" attr="string"/>        (attr: an attribute as well)
//!     <sphinx:attr name="year" type="int" default="1"/>
//!   </sphinx:schema>
//!   <sphinx:document id="7"> <title>…</title> <year>…</year> </sphinx:document>
//! </sphinx:docset>
//! ```
//! Of elements inside a field only the text is used. If a document repeats a field, the texts are joined.

use std::io::Read;

use quick_xml::{
    Reader, XmlVersion,
    escape::resolve_xml_entity,
    events::{BytesRef, BytesStart, Event},
};

use super::{
    columns::{Column, Kind},
    documents::{Document, DocumentSink, Lines},
};
use crate::{Error, Result};

/// The deepest nesting of elements in a field.
const MAX_DEPTH: usize = 256;
/// The most unknown elements for which a warning is given.
const MAX_UNKNOWN: usize = 20;

const DOCSET: &str = "sphinx:docset";
const SCHEMA: &str = "sphinx:schema";
const DOCUMENT: &str = "sphinx:document";
const KILL_LIST: &str = "sphinx:killlist";

/// Reads all documents of a stream. `columns` are those of the configuration.
pub(super) fn read(
    source: &str,
    stream: impl Read,
    columns: Vec<Column>,
    sink: &mut dyn DocumentSink,
) -> Result<()> {
    let mut reader = Reader::from_reader(Lines::new(stream));
    reader.config_mut().expand_empty_elements = true;
    let mut docset = Docset {
        columns,
        sink,
        place: DocsetPosition::Outside,
        has_columns: false,
        document: Document::default(),
        was_set: Vec::new(),
        unknown: Vec::new(),
    };
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        if !matches!(docset.place, DocsetPosition::Document | DocsetPosition::Cell { .. }) {
            reader.get_mut().begin_document();
        }
        let event = reader.read_event_into(&mut buffer);
        let line = reader.get_ref().line;
        let refuse = |message: String| Error::format(source, format!("line {line}: {message}"));
        let event = event.map_err(|error| refuse(explain(&error)))?;
        if matches!(event, Event::Eof) {
            return match docset.place {
                DocsetPosition::Over => Ok(()),
                _ => Err(refuse(format!("the stream ends before </{DOCSET}>"))),
            };
        }
        match docset.take(event, line) {
            Ok(()) => {}
            Err(Problem::Stream(message)) => return Err(refuse(message)),
            Err(Problem::Sink(error)) => return Err(error),
        }
    }
}

/// The position in the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DocsetPosition {
    Outside,
    Docset,
    /// In the schema, at this depth.
    Schema(usize),
    Document,
    /// In an element of a document, at this depth; `None` if it is not a column.
    Cell {
        column: Option<usize>,
        depth: usize,
    },
    Over,
}

struct Docset<'t> {
    columns: Vec<Column>,
    sink: &'t mut dyn DocumentSink,
    place: DocsetPosition,
    /// Whether the taker was given the columns.
    has_columns: bool,
    document: Document,
    /// Which columns have a value in the document.
    was_set: Vec<bool>,
    unknown: Vec<String>,
}

enum Problem {
    /// An error of the stream.
    Stream(String),
    /// An error of the taker.
    Sink(Error),
}

type Step<T = ()> = std::result::Result<T, Problem>;

fn stream_error<T>(message: impl Into<String>) -> Step<T> {
    Err(Problem::Stream(message.into()))
}

impl Docset<'_> {
    fn take(&mut self, event: Event<'_>, line: u64) -> Step {
        match event {
            Event::Start(tag) => self.start(&tag, line),
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let text = resolve(&reference)?;
                self.text(&text)
            }
            Event::Decl(declaration) => match declaration.encoding() {
                Some(Ok(name)) if !name.eq_ignore_ascii_case("utf-8") => stream_error(format!(
                    "the stream is in {name}: let the command give UTF-8, as by iconv -f {name} -t utf-8, and \
                     say so in <?xml?>"
                )),
                _ => Ok(()),
            },
            // The reader expands empty elements to start and end.
            Event::Empty(_) | Event::Comment(_) | Event::PI(_) | Event::DocType(_) | Event::Eof => {
                Ok(())
            }
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>, line: u64) -> Step {
        let name = tag.name().into_inner();
        self.place = match (self.place, name) {
            (DocsetPosition::Outside, DOCSET) => DocsetPosition::Docset,
            (DocsetPosition::Outside, _) => {
                return stream_error(format!("<{name}> stands where <{DOCSET}> is due"));
            }
            (DocsetPosition::Over, _) => {
                return stream_error(format!("<{name}> stands behind </{DOCSET}>"));
            }
            (DocsetPosition::Docset, SCHEMA) if self.has_columns => {
                return stream_error(format!(
                    "<{SCHEMA}> stands behind a document: put it first, once"
                ));
            }
            (DocsetPosition::Docset, SCHEMA) => {
                if !self.columns.is_empty() {
                    self.sink.warning(
                        "the stream has a schema, so the columns that the configuration declares \
                        are passed over"
                            .to_owned(),
                    );
                    self.columns.clear();
                }
                DocsetPosition::Schema(0)
            }
            (DocsetPosition::Docset, DOCUMENT) => self.start_document(tag, line)?,
            (DocsetPosition::Docset, KILL_LIST) => {
                return stream_error(format!(
                    "<{KILL_LIST}>: rows are not taken out of other tables but by rows of the same number: load \
                     all rows into one index"
                ));
            }
            (DocsetPosition::Docset, _) => {
                return stream_error(format!("<{name}> stands where <{DOCUMENT}> is due"));
            }
            (DocsetPosition::Schema(0), _) => {
                self.declare(name, tag)?;
                DocsetPosition::Schema(1)
            }
            (DocsetPosition::Schema(_), _) => {
                return stream_error(format!("<{name}> stands within a column of the schema"));
            }
            (DocsetPosition::Document, _) => self.start_cell(name),
            (DocsetPosition::Cell { depth, .. }, _) if depth >= MAX_DEPTH => {
                return stream_error(format!("elements nest deeper than {MAX_DEPTH}"));
            }
            (DocsetPosition::Cell { column, depth }, _) => {
                DocsetPosition::Cell { column, depth: depth + 1 }
            }
        };
        Ok(())
    }

    fn start_document(&mut self, tag: &BytesStart<'_>, line: u64) -> Step<DocsetPosition> {
        self.give_columns()?;
        self.document.place = format!("line {line}");
        self.document.number = attribute(tag, "id")?.unwrap_or_default().into_bytes();
        self.document.cells.resize_with(self.columns.len(), Vec::new);
        self.was_set = vec![false; self.columns.len()];
        for (cell, column) in self.document.cells.iter_mut().zip(&self.columns) {
            cell.clear();
            cell.extend_from_slice(column.default.as_bytes());
        }
        Ok(DocsetPosition::Document)
    }

    fn start_cell(&mut self, name: &str) -> DocsetPosition {
        let is_it = |column: &Column| column.name.eq_ignore_ascii_case(name);
        let column = self.columns.iter().position(is_it);
        match column {
            Some(at) => {
                let was_set =
                    self.was_set.get_mut(at).is_some_and(|it| std::mem::replace(it, true));
                if let Some(cell) = self.document.cells.get_mut(at) {
                    // The first value replaces the default; later ones are appended.
                    if was_set { cell.push(b' ') } else { cell.clear() }
                }
            }
            None if self.unknown.len() < MAX_UNKNOWN
                && !self.unknown.iter().any(|it| it == name) =>
            {
                self.unknown.push(name.to_owned());
                self.sink.warning(format!("<{name}> is no column and is passed over"));
            }
            None => {}
        }
        DocsetPosition::Cell { column, depth: 1 }
    }

    fn end(&mut self) -> Step {
        self.place = match self.place {
            DocsetPosition::Docset => {
                self.give_columns()?;
                DocsetPosition::Over
            }
            DocsetPosition::Schema(0) => DocsetPosition::Docset,
            DocsetPosition::Schema(depth) => DocsetPosition::Schema(depth - 1),
            DocsetPosition::Document => {
                self.sink.document(&self.document).map_err(Problem::Sink)?;
                DocsetPosition::Docset
            }
            DocsetPosition::Cell { depth: 1, .. } => DocsetPosition::Document,
            DocsetPosition::Cell { column, depth } => {
                DocsetPosition::Cell { column, depth: depth - 1 }
            }
            DocsetPosition::Outside | DocsetPosition::Over => self.place,
        };
        Ok(())
    }

    fn text(&mut self, text: &str) -> Step {
        match self.place {
            DocsetPosition::Cell { column: Some(at), .. } => {
                if let Some(cell) = self.document.cells.get_mut(at) {
                    cell.extend_from_slice(text.as_bytes());
                }
                Ok(())
            }
            DocsetPosition::Cell { .. } => Ok(()),
            _ if text.trim().is_empty() => Ok(()),
            _ => stream_error(format!(
                "'{}' stands outside of any column",
                text.trim().chars().take(30).collect::<String>()
            )),
        }
    }

    /// Gives the taker the columns, before the first document.
    fn give_columns(&mut self) -> Step {
        if self.has_columns {
            return Ok(());
        }
        self.has_columns = true;
        if self.columns.is_empty() {
            return stream_error(format!(
                "no column is declared: begin the stream with a <{SCHEMA}>, or set xmlpipe_field"
            ));
        }
        self.sink.columns(&self.columns).map_err(Problem::Sink)
    }

    fn declare(&mut self, element: &str, tag: &BytesStart<'_>) -> Step {
        let name = match attribute(tag, "name")? {
            Some(name) if !name.trim().is_empty() => name,
            _ => return stream_error(format!("<{element}> has no name")),
        };
        let kind = match element {
            "sphinx:field" => match attribute(tag, "attr")?.as_deref() {
                None => Kind::Field,
                Some("string") => Kind::FieldString,
                Some(other) => {
                    return stream_error(format!(
                        "attr=\"{other}\" of field '{name}': only string is known"
                    ));
                }
            },
            "sphinx:attr" => kind_of(&name, attribute(tag, "type")?.as_deref().unwrap_or("int"))?,
            _ => {
                return stream_error(format!(
                    "<{element}> in the schema: take sphinx:field or sphinx:attr"
                ));
            }
        };
        let mut column = Column::new(&name, kind);
        column.default = attribute(tag, "default")?.unwrap_or_default();
        if self.columns.iter().any(|other| other.name == column.name) {
            return stream_error(format!("the schema has column '{}' twice", column.name));
        }
        self.columns.push(column);
        Ok(())
    }
}

fn kind_of(name: &str, kind: &str) -> Step<Kind> {
    match Kind::of_type(kind) {
        Some(kind) => Ok(kind),
        None => stream_error(format!(
            "attribute '{name}' is {kind}: take int, bool, timestamp, bigint, float, string, json, multi or multi_64"
        )),
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Step<Option<String>> {
    let wrong = |error: &dyn std::fmt::Display| {
        Problem::Stream(format!("<{}>: {error}", tag.name().into_inner()))
    };
    let found = tag.try_get_attribute(name).map_err(|error| wrong(&error))?;
    let value = found.map(|it| it.normalized_value(XmlVersion::Implicit1_0)).transpose();
    Ok(value.map_err(|error| wrong(&error))?.map(std::borrow::Cow::into_owned))
}

/// The text of `&amp;` or `&#65;`.
fn resolve(reference: &BytesRef<'_>) -> Step<String> {
    match reference.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.to_string()),
        Ok(None) => match resolve_xml_entity(reference) {
            Some(text) => Ok(text.to_owned()),
            None => stream_error(format!(
                "&{}; is not defined in XML: write the character itself",
                &**reference
            )),
        },
        Err(error) => stream_error(error.to_string()),
    }
}

fn explain(error: &quick_xml::Error) -> String {
    match error {
        quick_xml::Error::Encoding(_) => {
            "it is not UTF-8: let the command convert it, as by iconv".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::tests::Kept, *};

    fn run(xml: &str, columns: &[(&str, Kind)]) -> Result<Kept> {
        let mut kept = Kept::default();
        let columns = columns.iter().map(|(name, kind)| Column::new(name, *kind)).collect();
        read("source 's'", xml.as_bytes(), columns, &mut kept)?;
        Ok(kept)
    }

    const SCHEMA_TEXT: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<sphinx:docset>
<sphinx:schema>
<sphinx:field name="subject"/>
<sphinx:field name="Content" attr="string"></sphinx:field>
<sphinx:attr name="published" type="timestamp"/>
<sphinx:attr name="author_id" type="int" bits="16" default="1"/>
</sphinx:schema>
"#;

    #[test]
    fn a_stream_has_a_schema_and_documents() {
        let text = format!(
            "{SCHEMA_TEXT}<!-- c --><sphinx:document id=\"1234\">\n\
             <content>this is <![CDATA[[and this <cdata>]]></content>\n<published>1012325463</published>\n\
             <subject>note &amp; how <b>tags</b> can be\r\nin <b class=\"red\">any</b> order &#65;</subject>\n\
             <misc>passed <b>over</b></misc></sphinx:document>\n\
             <sphinx:document id=\"1235\"><subject>another</subject><subject>twice</subject><content/>\
             <author_id>7</author_id></sphinx:document></sphinx:docset>\n"
        );
        let kept = run(&text, &[("ignored", Kind::Field)]).unwrap();
        let kinds: Vec<_> = kept.columns.iter().map(|it| (it.name.as_str(), it.kind)).collect();
        let expected = [
            ("subject", Kind::Field),
            ("content", Kind::FieldString),
            ("published", Kind::Timestamp),
            ("author_id", Kind::Uint),
        ];
        assert_eq!(kinds, expected);
        let subject = "note & how tags can be\nin any order A";
        let expected = [
            ["1234", subject, "this is [and this <cdata>", "1012325463", "1"],
            ["1235", "another twice", "", "", "7"],
        ];
        assert_eq!(kept.documents, expected);
        assert_eq!(kept.warnings.len(), 2, "{:?}", kept.warnings);
    }

    #[test]
    fn the_configuration_may_declare_the_columns() {
        let text =
            "<sphinx:docset><sphinx:document id='1'><t>x</t></sphinx:document></sphinx:docset>";
        let kept = run(text, &[("t", Kind::Field)]).unwrap();
        assert_eq!(kept.documents, [["1", "x"]]);
        let empty = run("<sphinx:docset></sphinx:docset>", &[("t", Kind::Field)]).unwrap();
        assert_eq!((empty.documents.len(), empty.columns.len()), (0, 1));
        assert!(run(text, &[]).err().unwrap().to_string().contains("no column is declared"));
    }

    #[test]
    fn errors_have_a_line() {
        let deep = format!("<sphinx:document id='1'><subject>{}", "<b>".repeat(300));
        let cases = [
            ("<sphinx:killlist>", "line 9: <sphinx:killlist>: rows are not taken out of"),
            ("\n<doc>", "line 10: <doc> stands where <sphinx:document> is due"),
            ("<sphinx:document id='1'>\nx</sphinx:document>", "'x' stands outside of any column"),
            ("<sphinx:document id='1'><subject>&nbsp;", "&nbsp; is not defined in XML"),
            ("<sphinx:document id='1'><subject></title>", "line 9: "),
            ("<sphinx:document id='1'><subject>", "the stream ends before </sphinx:docset>"),
            (&deep, "nest deeper than 256"),
        ];
        for (text, message) in cases {
            let error = run(&format!("{SCHEMA_TEXT}{text}"), &[]).err().unwrap().to_string();
            assert!(
                error.starts_with("source 's': line ") && error.contains(message),
                "{error} / {message}"
            );
        }
        for (from, to, message) in [
            ("type=\"timestamp\"", "type=\"multi_32\"", "is multi_32: take int, bool"),
            ("type=\"timestamp\"", "type=\"date\"", "take int, bool"),
            ("attr=\"string\"", "attr=\"wordcount\"", "only string is known"),
            ("name=\"published\"", "", "<sphinx:attr> has no name"),
            ("name=\"published\"", "name=\"subject\"", "column 'subject' twice"),
            ("utf-8", "windows-1251", "iconv -f windows-1251 -t utf-8"),
            ("<sphinx:docset>", "<docset>", "stands where <sphinx:docset> is due"),
        ] {
            let error = run(&SCHEMA_TEXT.replacen(from, to, 1), &[]).err().unwrap().to_string();
            assert!(error.contains(message), "{error} / {message}");
        }
        let mut kept = Kept::default();
        let bytes =
            [SCHEMA_TEXT.as_bytes(), b"<sphinx:document id='1'><subject>\xff</subject>"].concat();
        let error = read("source 's'", bytes.as_slice(), Vec::new(), &mut kept).err().unwrap();
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }

    proptest! {
        #[test]
        fn any_stream_is_read_or_refused(
            text in "(</?(sphinx:(docset|document|schema)|b|t)( id=\"1\")?/?>|[a&;<>]){0,30}",
        ) {
            let _ = run(&text, &[("t", Kind::Field)]);
            let _ = run(&format!("<sphinx:docset>{text}"), &[("t", Kind::Field)]);
        }
    }
}
