//! A text to excerpt, a query and options.

use std::sync::Arc;

use remora_words::{
    analysis::Analyzer,
    snippets::{OptionValue, SnippetOptions, Snippets},
};

/// One query.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub query: String,
    pub document: String,
    /// Options with other values than the defaults.
    pub options: Vec<(&'static str, Value)>,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Text(&'static str),
    Number(u32),
}

use Value::{Number, Text};

const DEFAULTS: [(&str, Value); 15] = [
    ("before_match", Text("<b>")),
    ("after_match", Text("</b>")),
    ("chunk_separator", Text(" ... ")),
    ("html_strip_mode", Text("index")),
    ("passage_boundary", Text("none")),
    ("limit", Number(256)),
    ("limit_passages", Number(0)),
    ("limit_words", Number(0)),
    ("around", Number(5)),
    ("start_passage_id", Number(1)),
    ("exact_phrase", Number(0)),
    ("query_mode", Number(0)),
    ("weight_order", Number(0)),
    ("force_all_words", Number(0)),
    ("allow_empty", Number(0)),
];

impl Case {
    fn value(&self, name: &str) -> Value {
        let all = self.options.iter().chain(&DEFAULTS);
        all.filter(|(other, _)| *other == name).map(|(_, value)| *value).next().unwrap()
    }

    pub fn number(&self, name: &str) -> u32 {
        match self.value(name) {
            Number(number) => number,
            Text(text) => panic!("{name} is {text}"),
        }
    }

    pub fn text(&self, name: &str) -> &'static str {
        match self.value(name) {
            Text(text) => text,
            Number(number) => panic!("{name} is {number}"),
        }
    }

    /// Our result.
    pub fn excerpt(&self, analyzer: &Arc<Analyzer>) -> Result<String, String> {
        let mut options = SnippetOptions::default();
        for (name, value) in &self.options {
            let value = match *value {
                Text(text) => OptionValue::Text(text),
                Number(number) => OptionValue::Number(number.into()),
            };
            options.set(name, value).map_err(|error| error.to_string())?;
        }
        let fields = ["title".to_owned()];
        let snippets = Snippets::new(&self.query, &fields, analyzer, options);
        Ok(snippets.map_err(|error| error.to_string())?.of(&self.document))
    }
}
