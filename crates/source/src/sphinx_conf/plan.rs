//! An index as a table, and the sources of its rows.

use remora_engine::{Schema, WordsDef};
use remora_words::settings::{Files, Settings};

use super::{
    IndexKind, SphinxConf,
    columns::{self, Column, ID},
    command::RunningCommand,
    docset,
    documents::DocumentSink,
    index_kind,
    keys::{self, Meaning, SectionKind},
    query::Query,
    separated::{self, Form},
    text::{Section, Setting},
    wrong,
};
use crate::{Error, Result};

/// Sphinx's default character table.
const DEFAULT_CHARSET: &str = "sphinx22";

/// A plain index.
pub(super) struct Plan {
    pub sources: Vec<Source>,
    /// Whether invalid JSON stops the load; otherwise it counts as missing.
    pub is_json_strict: bool,
    settings: Settings,
    files: Files,
}

/// A source of rows.
pub(super) struct Source {
    /// For messages.
    pub name: String,
    origin: Origin,
}

enum Origin {
    Separated { command: String, form: Form, columns: Vec<Column> },
    Docset { command: String, columns: Vec<Column> },
    Query(Box<Query>),
}

impl Plan {
    /// The plan of a plain index.
    pub fn of(conf: &SphinxConf, section: &Section) -> Result<Self> {
        if index_kind(section) != IndexKind::Plain {
            let message = format!("index '{}' is no plain index", section.name);
            return Err(wrong(&conf.file, section.line, message));
        }
        refuse_settings(conf, section, "")?;
        for kind in [SectionKind::Common, SectionKind::Indexer] {
            conf.single(kind).map_or(Ok(()), |section| refuse_settings(conf, section, ""))?;
        }
        let sources = section.all("source").filter(|setting| !setting.value.is_empty());
        let sources = sources.map(|setting| source(conf, setting)).collect::<Result<Vec<_>>>()?;
        if sources.is_empty() {
            let message = format!("index '{}' has no source", section.name);
            return Err(wrong(&conf.file, section.line, message));
        }
        let (settings, files) = words(conf, section)?;
        Ok(Self { sources, is_json_strict: is_json_strict(conf)?, settings, files })
    }

    /// The table with these columns.
    pub fn schema(&self, table: &str, source: &str, columns: &[Column]) -> Result<Schema> {
        let refuse = |message: String| Error::format(source, message);
        check_columns(columns).map_err(refuse)?;
        table_of(table, columns, &self.settings, &self.files)
    }
}

impl Source {
    /// Reads all documents.
    pub fn read(&self, sink: &mut dyn DocumentSink) -> Result<()> {
        let name = &self.name;
        match &self.origin {
            Origin::Separated { command, form, columns } => {
                let (running, mut output) = RunningCommand::start(name, command)?;
                let read = separated::read(name, &mut output, *form, columns, sink);
                running.finish(name, output, read)
            }
            Origin::Docset { command, columns } => {
                let (running, mut output) = RunningCommand::start(name, command)?;
                let read = docset::read(name, &mut output, columns.clone(), sink);
                running.finish(name, output, read)
            }
            Origin::Query(query) => query.read(name, sink),
        }
    }

    /// Runs the queries that are due after the index was loaded. `greatest` is its greatest document id.
    pub fn after_index(&self, greatest: u64) -> Result<()> {
        match &self.origin {
            Origin::Query(query) => query.after_index(greatest),
            Origin::Separated { .. } | Origin::Docset { .. } => Ok(()),
        }
    }
}

/// The table of a real-time index. Its columns stand as in Sphinx, because an INSERT without a list of columns gives values
/// in their order: the fields, then the attributes by type, each in the order of the section.
pub(super) fn real_time_table(conf: &SphinxConf, section: &Section) -> Result<Schema> {
    let mut columns = written_columns(conf, section)?;
    columns.sort_by_key(|column| column.kind.place());
    let (settings, files) = words(conf, section)?;
    table_of(&section.name, &columns, &settings, &files)
}

/// The documents of a percolate index.
pub(super) fn percolate_documents(conf: &SphinxConf, section: &Section) -> Result<Schema> {
    let columns = written_columns(conf, section)?;
    let (settings, files) = words(conf, section)?;
    let words = words_of(columns::document_fields(&columns), &settings, &files)?;
    Ok(columns::documents(&section.name, &columns, words))
}

/// The columns of an index that is written by SQL.
fn written_columns(conf: &SphinxConf, section: &Section) -> Result<Vec<Column>> {
    refuse_settings(conf, section, "")?;
    let columns = Column::of_section(section, "rt_");
    check_columns(&columns).map_err(|message| {
        wrong(&conf.file, section.line, format!("index '{}': {message}", section.name))
    })?;
    Ok(columns)
}

/// The table of a distributed index.
pub(super) fn distributed_table(conf: &SphinxConf, section: &Section) -> Result<Schema> {
    let setting_text =
        |key: &'static str| section.all(key).filter(|setting| !setting.value.is_empty());
    if let Some(agent) = setting_text("agent_blackhole").next() {
        let message = "agent_blackhole: nothing is asked whose answer is thrown away: leave it out";
        return Err(wrong(&conf.file, agent.line, message.to_owned()));
    }
    let mut agents = Vec::new();
    for (key, is_kept) in [("agent", false), ("agent_persistent", true)] {
        for agent in setting_text(key) {
            let value = agent.value.trim();
            check_agent(value)
                .map_err(|what| wrong(&conf.file, agent.line, format!("{key}: {what}")))?;
            agents.push(match value.strip_suffix(']') {
                _ if !is_kept => value.to_owned(),
                Some(setting_text) => format!("{setting_text},conn=pconn]"),
                None => format!("{value}[conn=pconn]"),
            });
        }
    }
    let mut settings = Vec::new();
    for key in ["ha_strategy", "agent_connect_timeout", "agent_query_timeout"] {
        if let Some(setting) = setting_text(key).last() {
            settings.push((key.to_owned(), setting.value.trim().to_owned()));
        }
    }
    let is_between = |character: char| character == ',' || character.is_whitespace();
    let locals = section.all("local").flat_map(|setting| setting.value.split(is_between));
    let parts: Vec<String> = locals.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let refuse = |message: String| {
        wrong(&conf.file, section.line, format!("index '{}': {message}", section.name))
    };
    if parts.is_empty() && agents.is_empty() {
        return Err(refuse("it has no parts: name each by local or agent".to_owned()));
    }
    let schema = Schema::distributed(&section.name, parts).with_agents(agents, settings);
    schema.validate().map_err(|error| refuse(error.to_string()))?;
    Ok(schema)
}

/// The error of an agent: each mirror must be `host:port`, and one must name tables.
fn check_agent(agent: &str) -> Result<(), String> {
    let (mirrors, _) = agent.split_once('[').unwrap_or((agent, ""));
    let mut names_tables = false;
    for mirror in mirrors.split('|').map(str::trim) {
        let mut parts = mirror.splitn(3, ':');
        let (host, port) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        names_tables |= parts.next().is_some_and(|tables| !tables.is_empty());
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(format!("'{mirror}' is no host:port:index, the SQL port of a Remora"));
        }
    }
    match names_tables {
        true => Ok(()),
        false => Err(format!("'{agent}' names no index: say host:port:index")),
    }
}

fn table_of(name: &str, columns: &[Column], settings: &Settings, files: &Files) -> Result<Schema> {
    let words = words_of(columns::fields(columns), settings, files)?;
    Ok(columns::schema(name, columns, words))
}

fn words_of(fields: Vec<usize>, settings: &Settings, files: &Files) -> Result<WordsDef> {
    let files = files.iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    Ok(WordsDef::new(0, fields, settings, files)?)
}

fn check_columns(columns: &[Column]) -> Result<(), String> {
    for (place, column) in columns.iter().enumerate() {
        let name = &column.name;
        if name == ID {
            return Err(format!("a column is named {ID}, as the document's number is: rename it"));
        }
        if columns.iter().take(place).any(|other| other.name == *name) {
            return Err(format!(
                "column '{name}' is there twice: for both, declare it as field_string"
            ));
        }
    }
    match columns::fields(columns).is_empty() {
        true => Err("there is no field to search: declare one".to_owned()),
        false => Ok(()),
    }
}

fn source(conf: &SphinxConf, setting: &Setting) -> Result<Source> {
    let is_it = |it: &&Section| it.kind == SectionKind::Source && it.name == setting.value;
    let Some(section) = conf.sections.iter().find(is_it) else {
        let message = format!("there is no source '{}': write its section", setting.value);
        return Err(wrong(&conf.file, setting.line, message));
    };
    let kind = section.text("type");
    let command = |key: &str| match section.text(key) {
        "" => {
            let message = format!("source '{}' needs {key}", section.name);
            Err(wrong(&conf.file, section.line, message))
        }
        command => Ok(command.to_owned()),
    };
    let columns = |prefix: &str| Column::of_section(section, prefix);
    let prefix = match kind {
        "tsvpipe" => "tsvpipe_",
        "csvpipe" => "csvpipe_",
        "xmlpipe2" => "xmlpipe_",
        "mysql" => "sql_",
        _ => {
            let line = section.get("type").map_or(section.line, |setting| setting.line);
            let found = if kind.is_empty() { "missing".to_owned() } else { format!("'{kind}'") };
            let message = format!(
                "the type of source '{}' is {found}: mysql, xmlpipe2, tsvpipe and csvpipe are read",
                section.name
            );
            return Err(wrong(&conf.file, line, message));
        }
    };
    refuse_settings(conf, section, prefix)?;
    let origin = match kind {
        "tsvpipe" => Origin::Separated {
            command: command("tsvpipe_command")?,
            form: Form::Tsv,
            columns: columns(prefix),
        },
        "csvpipe" => Origin::Separated {
            command: command("csvpipe_command")?,
            form: Form::Csv(delimiter(conf, section)?),
            columns: columns(prefix),
        },
        "xmlpipe2" => {
            Origin::Docset { command: command("xmlpipe_command")?, columns: columns(prefix) }
        }
        _ => {
            let indexer = conf.single(SectionKind::Indexer);
            Origin::Query(Box::new(Query::of_section(&conf.file, section, indexer)?))
        }
    };
    Ok(Source { name: format!("source '{}'", section.name), origin })
}

fn delimiter(conf: &SphinxConf, section: &Section) -> Result<u8> {
    let Some(setting) = section.get("csvpipe_delimiter") else { return Ok(b',') };
    match setting.value.as_bytes() {
        [] => Ok(b','),
        [byte] if !b"\"\\\r\n".contains(byte) => Ok(*byte),
        _ => {
            let message = format!("csvpipe_delimiter: '{}' is not one character", setting.value);
            Err(wrong(&conf.file, setting.line, message))
        }
    }
}

/// The prefixes of keys for one type of source.
const PREFIXES: [&str; 4] = ["sql_", "xmlpipe_", "tsvpipe_", "csvpipe_"];

/// Refuses unsupported keys of a section. Keys of other types of sources than `prefix` are ignored.
fn refuse_settings(conf: &SphinxConf, section: &Section, prefix: &str) -> Result<()> {
    let is_of_other =
        |key: &str| PREFIXES.iter().any(|other| *other != prefix && key.starts_with(other));
    for setting in &section.settings {
        let is_off = ["", "0"].contains(&setting.value.as_str());
        let known = keys::find(section.kind, setting.key);
        if let Some(Meaning::Refused(advice)) = known.map(|key| key.meaning)
            && !is_off
            && !is_of_other(setting.key)
        {
            return Err(wrong(&conf.file, setting.line, format!("{}: {advice}", setting.key)));
        }
    }
    Ok(())
}

/// The settings of an index's ranked search, and their files.
fn words(conf: &SphinxConf, section: &Section) -> Result<(Settings, Files)> {
    let mut settings = Settings::default();
    let at = |line: u32, error: &dyn std::fmt::Display| wrong(&conf.file, line, error);
    settings.set("charset_table", DEFAULT_CHARSET).map_err(|error| at(section.line, &error))?;
    let (mut wordforms, mut filters): (Vec<&str>, Vec<String>) = Default::default();
    for Setting { key, value, line, .. } in &section.settings {
        if value.is_empty() || !Settings::is_setting(key) {
            continue;
        }
        let value = match *key {
            "wordforms" => {
                wordforms.push(value);
                wordforms.join(" ")
            }
            "regexp_filter" => {
                filters.push(value.clone());
                Settings::list_of(&filters)
            }
            // Sphinx reads 0 as 1.
            "min_word_len" | "min_stemming_len" if value == "0" => "1".to_owned(),
            _ => value.clone(),
        };
        settings.set(key, &value).map_err(|error| at(*line, &error))?;
    }
    let files = Files::read(&settings, &mut |name| std::fs::read_to_string(name));
    Ok((settings, files.map_err(|error| at(section.line, &error))?))
}

fn is_json_strict(conf: &SphinxConf) -> Result<bool> {
    let sections = [SectionKind::Common, SectionKind::Indexer].map(|kind| conf.single(kind));
    let setting = sections.into_iter().flatten().find_map(|it| it.get("on_json_attr_error"));
    match setting.map(|setting| (setting.value.as_str(), setting.line)) {
        None | Some(("ignore_attr" | "", _)) => Ok(false),
        Some(("fail_index", _)) => Ok(true),
        Some((other, line)) => Err(wrong(
            &conf.file,
            line,
            format!("on_json_attr_error: '{other}' is neither ignore_attr nor fail_index"),
        )),
    }
}
