//! A writer that does to a source, at random, everything an application and its operators may do.

mod ddl;
mod family;
mod literal;
pub mod shape;
mod tables;

use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

use crate::random::Random;
use shape::Shape;

/// The database everything happens in.
pub const DATABASE: &str = "shop";

/// Writes through one connection.
pub struct Generator {
    pub random: Random,
    kind: Kind,
    connection: Conn,
    shapes: Vec<Shape>,
    names: usize,
    /// Every statement that took effect or was tried, newest last: shown when a test fails.
    pub history: Vec<String>,
    /// Statements that the source took, and those it refused.
    pub taken: usize,
    pub refused: usize,
    /// Whether the connection is gone: the source went away. Nothing is written any more.
    pub lost: bool,
}

impl Generator {
    /// Makes the database with tables of every type.
    pub fn new(server: &Server, random: Random) -> Self {
        let mut generator = Self::attach(server, random);
        generator.must(&format!("CREATE DATABASE {DATABASE} DEFAULT CHARACTER SET utf8mb4"));
        generator.must(&format!("USE {DATABASE}"));
        for statement in tables::every_type(server.kind()) {
            generator.must(&statement);
        }
        generator.must("CREATE TABLE keyless (a INT, b VARCHAR(20))");
        generator.must("INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (2, 'y')");
        generator.must("CREATE TABLE ledger_a (id INT PRIMARY KEY, amount BIGINT NOT NULL)");
        generator.must("CREATE TABLE ledger_b (id INT PRIMARY KEY, amount BIGINT NOT NULL)");
        generator.must("INSERT INTO ledger_a VALUES (1, 0), (2, 0), (3, 0)");
        generator.must("INSERT INTO ledger_b VALUES (1, 0), (2, 0), (3, 0)");
        family::TABLES.iter().for_each(|statement| generator.must(statement));
        generator.read_shapes();
        generator
    }

    /// Goes on writing to a database made before.
    pub fn attach(server: &Server, random: Random) -> Self {
        let mut connection = server.connect().unwrap();
        connection
            .query_drop("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
            .unwrap();
        let mut generator = Self {
            random,
            kind: server.kind(),
            connection,
            shapes: Vec::new(),
            names: 0,
            history: Vec::new(),
            taken: 0,
            refused: 0,
            lost: false,
        };
        if generator.connection.query_drop(format!("USE {DATABASE}")).is_ok() {
            generator.names = generator.random.below(1_000_000) * 1_000;
            generator.read_shapes();
        }
        generator
    }

    /// Rows in every table, as they were before anybody followed.
    pub fn fill(&mut self, rows: usize) {
        for place in 0..self.shapes.len() {
            for _ in 0..rows.div_ceil(8) {
                let statement = self.insert(place, "INSERT IGNORE");
                self.run(&statement);
            }
        }
    }

    /// Runs a statement of which it is not known whether the source ran it.
    pub fn again(&mut self, statement: &str) {
        self.run(statement);
    }

    /// One transaction, or one schema change where the chance has it.
    pub fn step(&mut self, ddl_percent: usize) {
        if self.random.chance(ddl_percent) {
            return self.change_schema();
        }
        match self.random.below(10) {
            0 => self.transfer(),
            1 => family::change(self),
            2 => {
                let statement = self.statement();
                self.run(&statement);
            }
            _ => self.transaction(),
        }
    }

    /// A transaction of many rows over several tables.
    pub fn big_transaction(&mut self, rows: usize) {
        self.run("START TRANSACTION");
        for place in 0..self.shapes.len() {
            for _ in 0..rows.div_ceil(8 * self.shapes.len()) {
                let statement = self.insert(place, "REPLACE");
                self.run(&statement);
            }
        }
        let statement = self.update(0, 1_000_000);
        self.run(&statement);
        self.run("COMMIT");
    }

    fn transaction(&mut self) {
        self.run("START TRANSACTION");
        let mut savepoint = false;
        for _ in 0..1 + self.random.below(6) {
            let statement = self.statement();
            self.run(&statement);
            match self.random.below(8) {
                0 => {
                    self.run("SAVEPOINT here");
                    savepoint = true;
                }
                1 if savepoint => self.run("ROLLBACK TO SAVEPOINT here"),
                _ => {}
            }
        }
        let end = if self.random.chance(85) { "COMMIT" } else { "ROLLBACK" };
        self.run(end);
    }

    /// Moves an amount between two tables: the sum over both is always zero.
    fn transfer(&mut self) {
        let (amount, a, b) =
            (self.random.below(1000), 1 + self.random.below(3), 1 + self.random.below(3));
        self.run("START TRANSACTION");
        self.run(&format!("UPDATE ledger_a SET amount = amount + {amount} WHERE id = {a}"));
        self.run(&format!("UPDATE ledger_b SET amount = amount - {amount} WHERE id = {b}"));
        self.run("COMMIT");
    }

    fn statement(&mut self) -> String {
        if self.shapes.is_empty() {
            return "DO 1".to_owned();
        }
        let place = self.random.below(self.shapes.len());
        let limit = 1 + self.random.below(5);
        match self.random.below(20) {
            0..=7 => self.insert(place, "INSERT IGNORE"),
            8 => self.insert(place, "REPLACE"),
            9..=14 => self.update(place, limit),
            15..=16 => self.change_key(place),
            _ => {
                let order = self.random.below(1000);
                let name = &self.shapes[place].name;
                format!("DELETE FROM {name} ORDER BY RAND({order}) LIMIT {limit}")
            }
        }
    }

    fn insert(&mut self, place: usize, verb: &str) -> String {
        let shape = self.shapes[place].clone();
        let columns: Vec<_> = shape.columns.iter().filter(|column| !column.generated).collect();
        let names: Vec<_> = columns.iter().map(|column| format!("`{}`", column.name)).collect();
        let mut rows = Vec::new();
        for _ in 0..1 + self.random.below(8) {
            let values: Vec<_> = columns
                .iter()
                .map(|column| literal::literal(&mut self.random, self.kind, column))
                .collect();
            rows.push(format!("({})", values.join(", ")));
        }
        format!("{verb} INTO {} ({}) VALUES {}", shape.name, names.join(", "), rows.join(", "))
    }

    fn update(&mut self, place: usize, limit: usize) -> String {
        let shape = self.shapes[place].clone();
        let mut columns: Vec<_> = shape
            .columns
            .iter()
            .filter(|column| !column.generated && !shape.is_key(column))
            .collect();
        while columns.len() > 1 && self.random.chance(60) {
            columns.remove(self.random.below(columns.len()));
        }
        let mut sets = Vec::new();
        for column in columns {
            let partly = column.data_type == "json" && self.random.chance(60);
            let value = match partly && self.kind == Kind::MySql97 {
                true => self.json_change(&column.name),
                false => literal::literal(&mut self.random, self.kind, column),
            };
            sets.push(format!("`{}` = {value}", column.name));
        }
        if sets.is_empty() {
            return "DO 2".to_owned();
        }
        let (sets, order) = (sets.join(", "), self.random.below(1000));
        format!("UPDATE IGNORE {} SET {sets} ORDER BY RAND({order}) LIMIT {limit}", shape.name)
    }

    /// A change within a document, which the binlog may hold as a difference.
    fn json_change(&mut self, column: &str) -> String {
        let value = literal::quoted(&literal::json(&mut self.random, 1));
        let path = self.random.pick(&["$.k0", "$.k1é", "$[0]", "$.k0[1]", "$.fresh"]);
        match self.random.below(4) {
            0 => format!("JSON_REMOVE(`{column}`, '{}')", path.trim_end_matches("[1]")),
            1 => format!("JSON_REPLACE(`{column}`, '{path}', CAST({value} AS JSON))"),
            2 => format!("JSON_ARRAY_APPEND(`{column}`, '$', CAST({value} AS JSON))"),
            _ => format!("JSON_SET(`{column}`, '{path}', CAST({value} AS JSON))"),
        }
    }

    fn change_key(&mut self, place: usize) -> String {
        let shape = self.shapes[place].clone();
        let Some(name) = shape.key.first() else { return "DO 3".to_owned() };
        let value = literal::literal(&mut self.random, self.kind, shape.column(name));
        let order = self.random.below(1000);
        format!(
            "UPDATE IGNORE {} SET `{name}` = {value} ORDER BY RAND({order}) LIMIT 1",
            shape.name
        )
    }

    fn change_schema(&mut self) {
        let candidates: Vec<_> =
            self.shapes.iter().filter(|s| !s.key.is_empty()).cloned().collect();
        if candidates.is_empty() {
            let name = self.fresh();
            let statement = tables::random_table(&mut self.random, self.kind, &name);
            self.run(&statement);
        } else {
            let shape = self.random.pick(&candidates);
            let names = &mut self.names;
            let mut fresh = || {
                *names += 1;
                format!("n{names}")
            };
            for statement in ddl::change(&mut self.random, self.kind, &shape, &mut fresh) {
                self.run(&statement);
            }
        }
        self.read_shapes();
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// What the random statements write to: everything but the ledgers and the family.
    fn read_shapes(&mut self) {
        if self.lost {
            return;
        }
        match self.shapes_of_source() {
            Ok(shapes) => self.shapes = shapes,
            Err(_) => self.lost = true,
        }
    }

    fn shapes_of_source(&mut self) -> mysql::Result<Vec<Shape>> {
        shape::table_names(&mut self.connection, DATABASE)?
            .iter()
            .filter(|name| !name.starts_with("ledger_") && !name.starts_with("family_"))
            .map(|name| shape::read(&mut self.connection, DATABASE, name))
            .collect()
    }

    fn must(&mut self, statement: &str) {
        self.history.push(statement.to_owned());
        self.connection
            .query_drop(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Runs a statement; the source may refuse it (a duplicate key, a row too large), which is as
    /// good as not having asked.
    fn run(&mut self, statement: &str) {
        if self.lost {
            return;
        }
        self.history.push(statement.chars().take(400).collect());
        match self.connection.query_drop(statement) {
            Ok(()) => self.taken += 1,
            Err(mysql::Error::MySqlError(error)) => {
                self.refused += 1;
                self.history.push(format!("-- refused: {error}"));
            }
            Err(_) => self.lost = true,
        }
    }
}
