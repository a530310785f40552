//! A shop that lends films, in the spirit of the Sakila sample database, and Sakila itself where
//! `REMORA_SAKILA` names the directory of its `sakila-schema.sql` and `sakila-data.sql`.

use std::{fs, path::Path};

use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

use crate::{
    followed::{Followed, compare},
    generator::DATABASE,
    random::Random,
};

/// Runs a script as the command-line client does: statements end with the delimiter at the end of a
/// line, and DELIMITER changes it.
fn run_script(connection: &mut Conn, script: &str) {
    let mut delimiter = ";".to_owned();
    let mut statement = String::new();
    for line in script.lines() {
        if let Some(next) = line.trim().strip_prefix("DELIMITER ") {
            delimiter = next.trim().to_owned();
            continue;
        }
        if statement.is_empty() && (line.trim().is_empty() || line.starts_with("--")) {
            continue;
        }
        statement.push_str(line);
        statement.push('\n');
        if let Some(whole) = statement.trim_end().strip_suffix(&*delimiter) {
            connection.query_drop(whole).unwrap_or_else(|error| panic!("{whole}: {error}"));
            statement.clear();
        }
    }
}

/// A day in the shop.
const A_DAY: [&str; 14] = [
    "START TRANSACTION",
    "CALL lend(3, 2)",
    "UPDATE rental SET returned = NOW() WHERE rental_id = 1",
    "UPDATE payment SET note = 'late: 2 days — 😀' WHERE rental_id = 1",
    "COMMIT",
    "UPDATE film SET title = 'Deeper Reef', fee = fee + 1.005 WHERE film_id = 1",
    "UPDATE film SET film_id = 4000 WHERE film_id = 4 AND NOT EXISTS
       (SELECT 1 FROM film_performer WHERE film_performer.film_id = 4)",
    "DELETE FROM film_performer WHERE film_id = 5",
    "DELETE FROM film WHERE film_id = 5",
    "UPDATE rental JOIN payment USING (rental_id) SET returned = lent, amount = amount + 0.5",
    "UPDATE customer SET picture = REPEAT(X'00FF', 200), name = CONCAT(name, ' jr.')",
    "DELETE rental, payment FROM rental JOIN payment USING (rental_id) WHERE rental.film_id = 2",
    "INSERT INTO performer (first_name, last_name) SELECT last_name, first_name FROM performer",
    "UPDATE address SET location = ST_GeomFromText('POINT(0 -0.5)'), phone = '000' LIMIT 2",
];

fn a_film_shop_is_followed(kind: Kind) {
    let server = Server::start(kind, &[]).unwrap();
    let mut random = Random::seeded("film shop");
    let mut connection = server.connect().unwrap();
    connection.query_drop(format!("CREATE DATABASE {DATABASE}")).unwrap();
    connection.query_drop(format!("USE {DATABASE}")).unwrap();
    run_script(&mut connection, include_str!("film_shop/schema.sql"));
    run_script(&mut connection, include_str!("film_shop/data.sql"));
    let followed = Followed::start(&server);
    followed.compare(&server, &mut random).unwrap();
    for statement in A_DAY {
        connection.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    followed.compare(&server, &mut random).unwrap();
}

fn sakila_is_followed(kind: Kind) {
    let Ok(directory) = std::env::var("REMORA_SAKILA") else { return };
    let read = |name: &str| fs::read_to_string(Path::new(&directory).join(name)).unwrap();
    // Both scripts name their database; the tests look at another.
    let renamed = |script: String| {
        ["DROP SCHEMA IF EXISTS ", "CREATE SCHEMA ", "USE "].iter().fold(script, |script, verb| {
            script.replace(&format!("{verb}sakila;"), &format!("{verb}{DATABASE};"))
        })
    };
    let server = Server::start(kind, &[]).unwrap();
    let mut connection = server.connect().unwrap();
    run_script(&mut connection, &renamed(read("sakila-schema.sql")));
    let followed = Followed::start(&server);
    run_script(&mut connection, &renamed(read("sakila-data.sql")));
    let mut random = Random::seeded("Sakila");
    followed.compare(&server, &mut random).unwrap();
    // And by a copy instead of the binlog.
    let copied = Followed::start(&server);
    copied.catch_up(&server).unwrap();
    compare(&copied.engine, &server, &mut random).unwrap();
}

crate::for_every_kind!(a_film_shop_is_followed, sakila_is_followed);
