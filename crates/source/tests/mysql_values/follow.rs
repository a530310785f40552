//! A binlog read from its beginning, its rows applied to maps.

use std::{collections::BTreeMap, time::Duration};

use mysql::{Conn, Params, prelude::Queryable};
use remora_engine::Row;
use remora_peers::{HOST, Server};
use remora_source::{
    Error,
    mysql::{
        binlog::{RowDecoder, RowsKind, SourceEvent, SourceStream},
        connection,
        gtid::GtidSet,
        schema::SourceTable,
        settings::MysqlSettings,
        values::from_select,
    },
};

/// What was read of a server's binlog.
pub struct Followed {
    settings: MysqlSettings,
    from: GtidSet,
    partial_updates: usize,
    tables: BTreeMap<String, (SourceTable, BTreeMap<String, Row>)>,
}

impl Followed {
    /// Begins at the present.
    pub fn start(server: &Server) -> Self {
        let settings = MysqlSettings::from_url(&server.follower_url("types")).unwrap();
        assert_eq!(settings.host, HOST);
        let from = connection::connect(&settings).unwrap().executed().unwrap();
        Self { settings, from, partial_updates: 0, tables: BTreeMap::new() }
    }

    /// A table whose rows are kept.
    pub fn add(&mut self, table: SourceTable) {
        self.tables.insert(table.name.clone(), (table, BTreeMap::new()));
    }

    /// The tables and their rows.
    pub fn tables(&self) -> impl Iterator<Item = (&SourceTable, &BTreeMap<String, Row>)> {
        self.tables.values().map(|(table, rows)| (table, rows))
    }

    /// How many events held differences of JSON documents.
    pub fn partial_updates(&self) -> usize {
        self.partial_updates
    }

    /// Reads up to a mark that is written now.
    pub fn until_end(&mut self, connection: &mut Conn) {
        super::execute(connection, "CREATE TABLE IF NOT EXISTS mark (id INT PRIMARY KEY)");
        super::execute(connection, "DROP TABLE mark");
        let mut stream = SourceStream::open(&self.settings, &self.from).unwrap();
        let interrupter = stream.interrupter();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(120));
            interrupter.interrupt();
        });
        loop {
            match stream.next().unwrap() {
                SourceEvent::Rows { table, kind, version, body } => {
                    let Some((source, rows)) = self.tables.get_mut(&table.table) else { continue };
                    self.partial_updates += usize::from(kind == RowsKind::PartialUpdate);
                    let decoder = RowDecoder::new(source, &table)
                        .unwrap_or_else(|error| panic!("{error}: {table:?}"));
                    let mut visit = |change| {
                        super::apply(rows, source, change);
                        Ok::<_, Error>(())
                    };
                    let decoded = decoder.decode(kind, version, &body, &mut visit);
                    decoded.unwrap_or_else(|error| panic!("{error}: {table:?} {:?}", &body[..]));
                }
                SourceEvent::Statement { query, .. } if query.sql.starts_with("DROP TABLE") => {
                    break;
                }
                SourceEvent::Begin { gtid, .. } => self.from.add(&gtid),
                _ => {}
            }
        }
    }
}

/// Every row of a table by one of the two protocols.
pub fn select(connection: &mut Conn, table: &SourceTable, text_protocol: bool) -> Vec<Row> {
    let statement = format!("SELECT {} FROM `types`.`{}`", table.select_list(), table.name);
    let rows: Vec<mysql::Row> = match text_protocol {
        true => connection.query(&statement).unwrap(),
        false => connection.exec(&statement, Params::Empty).unwrap(),
    };
    let converted = rows.into_iter().map(|row| {
        let values = table.columns.iter().zip(row.unwrap());
        values.map(|(column, value)| from_select(column, value).unwrap()).collect()
    });
    converted.collect()
}
