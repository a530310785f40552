//! A mysql source: the columns of `sql_query`, of which the first is the document id.
//!
//! A column that is not declared as an attribute is a field; `sql_joined_field` adds fields from other queries. With
//! `sql_query_range` the query runs once for each range of ids, with its bounds for `$start` and `$end`.

use std::time::Duration;

use super::{
    columns::{Column, Kind, document_number},
    documents::{Document, DocumentSink},
    joined::{self, Joined, Texts},
    range::{DEFAULT_STEP, Pace, of_stretch, ranged},
    sets::{self, MultiValueAttribute, Sets},
    text::Section,
    unpack::Unpacking,
    wrong,
};
use crate::{
    Error, Result,
    mysql::{
        connection::{self, Connection},
        settings::{MysqlSettings, Tls, TlsMode},
    },
};

/// The queries of a mysql source.
pub(super) struct Query {
    settings: MysqlSettings,
    before: Vec<String>,
    query: String,
    /// The query for the range of ids, if `query` is run in ranges.
    ends: Option<String>,
    pace: Pace,
    after: Vec<String>,
    after_index: Vec<String>,
    attributes: Vec<Column>,
    /// The multi-value attributes.
    sets: Vec<MultiValueAttribute>,
    /// Fields from other queries.
    joined: Vec<Joined>,
    unpacking: Unpacking,
}

/// The results of the other queries, by document id.
struct AuxiliaryResults {
    texts: Vec<Texts>,
    sets: Vec<Sets>,
}

impl Query {
    /// Reads the settings of a section and of the indexer.
    pub fn of_section(file: &str, section: &Section, indexer: Option<&Section>) -> Result<Self> {
        let missing =
            |key: &str| wrong(file, section.line, format!("source '{}' needs {key}", section.name));
        let number = |key: &str, default: u64| match section
            .get(key)
            .filter(|it| !it.value.is_empty())
        {
            None => Ok(default),
            Some(setting) => setting.value.parse().map_err(|_| {
                wrong(file, setting.line, format!("{key}: '{}' is no whole number", setting.value))
            }),
        };
        let list = |key: &str| -> Vec<String> {
            let values = section.all(key).map(|it| it.value.clone());
            // An empty value only removes the parent's.
            values.filter(|value| !value.is_empty()).collect()
        };
        let query = section.text("sql_query").to_owned();
        let host = section.text("sql_host").to_owned();
        if query.is_empty() || host.is_empty() {
            return Err(missing(if query.is_empty() { "sql_query" } else { "sql_host" }));
        }
        let ends =
            Some(section.text("sql_query_range").to_owned()).filter(|query| !query.is_empty());
        // Joined fields and sets that are read in ranges use them too.
        let pace = Pace {
            step: number("sql_range_step", DEFAULT_STEP)?.max(1),
            pause: Duration::from_millis(number("sql_ranged_throttle", 0)?),
        };
        if ends.is_some() && !(query.contains("$start") && query.contains("$end")) {
            return Err(missing("$start and $end in sql_query, as it has sql_query_range"));
        }
        let port = number("sql_port", 3306)?;
        let port = u16::try_from(port).map_err(|_| missing("a sql_port of at most 65535"))?;
        let database = section.text("sql_db").to_owned();
        let settings = MysqlSettings {
            name: section.name.clone(),
            host,
            port,
            user: section.text("sql_user").to_owned(),
            password: section.text("sql_pass").to_owned(),
            database: Some(database).filter(|name| !name.is_empty()),
            tls: tls(section),
            ..MysqlSettings::default()
        };
        let (before, after) = (list("sql_query_pre"), list("sql_query_post"));
        let after_index = list("sql_query_post_index");
        let mut attributes = Column::of_section(section, "sql_");
        // Removes the columns that the declarations of sets were misread as.
        attributes.retain(|column| column.kind != Kind::Multi);
        let sets = multi_value_attributes(file, section)?;
        let of_field = sets.iter().filter(|set| set.is_of_field());
        attributes.extend(of_field.map(|set| set.column.clone()));
        let joined = joined_fields(file, section)?;
        let unpacking = Unpacking::of_section(file, section, indexer)?;
        Ok(Self {
            settings,
            before,
            query,
            ends,
            pace,
            after,
            after_index,
            attributes,
            sets,
            joined,
            unpacking,
        })
    }

    /// Reads all documents.
    pub fn read(&self, source: &str, sink: &mut dyn DocumentSink) -> Result<()> {
        let mut connection = self.connect()?;
        for statement in &self.before {
            connection.run(statement)?;
        }
        let charset: Option<Option<String>> = connection.first("SELECT @@character_set_results")?;
        if charset.flatten().is_some_and(|charset| charset.starts_with("utf8")) {
            // MySQL's utf8, as in many a `SET NAMES`, lacks a part of Unicode.
            connection.run("SET character_set_results = utf8mb4")?;
        }
        let sets = sets::read(source, &self.sets, self.pace, &mut connection)?;
        let texts = joined::read(source, &self.joined, self.pace, &mut connection)?;
        let auxiliary = AuxiliaryResults { texts, sets };
        let mut read = |connection: &mut Connection, query: &str| {
            self.read_part(source, connection, query, &auxiliary, sink)
        };
        match &self.ends {
            None => read(&mut connection, &self.query)?,
            Some(ends) => ranged(&mut connection, ends, self.pace, |connection, part| {
                // Even without rows the query tells its columns.
                let (start, end) = part.unwrap_or((1, 0));
                read(connection, &of_stretch(&self.query, start, end))
            })?,
        }
        for statement in &self.after {
            // As in Sphinx: the documents are loaded already.
            if let Err(error) = connection.run(statement) {
                sink.warning(format!("sql_query_post: {error}"));
            }
        }
        Ok(())
    }

    /// Runs `sql_query_post_index`. `$maxid` is the greatest document id.
    pub fn after_index(&self, greatest: u64) -> Result<()> {
        if self.after_index.is_empty() {
            return Ok(());
        }
        let mut connection = self.connect()?;
        let greatest = greatest.to_string();
        let mut statements = self.after_index.iter();
        statements.try_for_each(|it| connection.run(&it.replace("$maxid", &greatest)))
    }

    fn connect(&self) -> Result<Connection> {
        let mut connection = connection::connect(&self.settings)?;
        connection.allow_all()?;
        Ok(connection)
    }

    fn read_part(
        &self,
        source: &str,
        connection: &mut Connection,
        statement: &str,
        auxiliary: &AuxiliaryResults,
        sink: &mut dyn DocumentSink,
    ) -> Result<()> {
        let mut document = Document::default();
        let (mut is_begun, mut places) = (false, Vec::new());
        connection.each_row(statement, &mut |names, cells| {
            if !is_begun {
                is_begun = true;
                sink.columns(&self.columns(source, names)?)?;
                places = self.unpacking.places(source, names.get(1..).unwrap_or_default())?;
            }
            let Some(cells) = cells else { return Ok(()) };
            let mut cells = cells.into_iter();
            document.number = cells.next().unwrap_or_default();
            document.cells = cells.collect();
            document.place = format!("document {}", String::from_utf8_lossy(&document.number));
            if !self.unpacking.apply(source, &places, &mut document, sink)? {
                return Ok(());
            }
            let number = document_number(&document.number);
            // Texts and sets have the same form: bytes by document id.
            let of_document = |found: &Texts| number.and_then(|number| found.get(&number).cloned());
            let found = auxiliary.texts.iter().chain(&auxiliary.sets);
            document.cells.extend(found.map(|found| of_document(found).unwrap_or_default()));
            sink.document(&document)
        })
    }

    /// The columns of a result after the first.
    fn columns(&self, source: &str, names: &[String]) -> Result<Vec<Column>> {
        let Some((_, names)) = names.split_first().filter(|(_, names)| !names.is_empty()) else {
            let message =
                "sql_query selects no field or attribute: the document's number, then the columns";
            return Err(Error::format(source, message));
        };
        let column = |name: &String| {
            let name = name.to_lowercase();
            let declared = self.attributes.iter().find(|column| column.name == name);
            declared.cloned().unwrap_or_else(|| Column::new(&name, Kind::Field))
        };
        let own = self.sets.iter().filter(|set| !set.is_of_field()).map(|set| set.column.clone());
        let joined = self.joined.iter().map(|field| field.column.clone());
        let columns: Vec<Column> = names.iter().map(column).chain(joined).chain(own).collect();
        let is_there = |wanted: &&Column| !columns.iter().any(|column| column.name == wanted.name);
        match self.attributes.iter().find(is_there) {
            Some(missing) => Err(Error::format(
                source,
                format!("sql_query selects no column '{}', which an attribute names", missing.name),
            )),
            None => Ok(columns),
        }
    }
}

fn multi_value_attributes(file: &str, section: &Section) -> Result<Vec<MultiValueAttribute>> {
    let declared = section.all("sql_attr_multi").filter(|setting| !setting.value.is_empty());
    let sets = declared.map(|setting| {
        MultiValueAttribute::of_value(&setting.value)
            .map_err(|message| wrong(file, setting.line, message))
    });
    sets.collect()
}

fn joined_fields(file: &str, section: &Section) -> Result<Vec<Joined>> {
    let declared = section.all("sql_joined_field").filter(|setting| !setting.value.is_empty());
    let fields = declared.map(|setting| {
        Joined::of_value(&setting.value).map_err(|message| wrong(file, setting.line, message))
    });
    fields.collect()
}

fn tls(section: &Section) -> Tls {
    let path = |key: &str| Some(section.text(key)).filter(|path| !path.is_empty()).map(Into::into);
    let ca = path("mysql_ssl_ca");
    let identity = path("mysql_ssl_cert").zip(path("mysql_ssl_key"));
    let mode = match (&ca, &identity) {
        (Some(_), _) => TlsMode::VerifyCa,
        (None, Some(_)) => TlsMode::Required,
        (None, None) => TlsMode::Preferred,
    };
    Tls { mode, ca, identity, server_public_key: None }
}
